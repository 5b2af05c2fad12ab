//! What rules may cost, so that none keeps the server busy: loops count what they do, and what makes
//! large values counts their size, much as Kubernetes does.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use kube_cel::cel::{
    Context, ExecutionError, Value as Cel,
    common::{
        ast::{
            CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue,
            operators,
        },
        types::CelInt,
    },
    extractors::{Arguments, This},
};

/// What one rule may cost, and all rules on one object together.
const RULE: u64 = 1_000_000;
const OBJECT: u64 = 10_000_000;
/// A net below them: some loops take more time than is counted. A busy machine does not reach it.
const TIME: Duration = Duration::from_secs(20);
/// Of a text or a list, this many bytes or items cost as much as one step.
const UNIT: usize = 10;

/// Names that no rule can use.
const STEP: &str = "@step";
const GROWN: &str = "@grown";

thread_local! {
    static ACCOUNT: Cell<Account> = const { Cell::new(Account { rule: RULE, object: OBJECT, until: None }) };
}

#[derive(Clone, Copy)]
struct Account {
    /// What is left.
    rule: u64,
    object: u64,
    until: Option<Instant>,
}

/// Which of the limits has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Rule,
    Object,
}

/// The rules of another object begin.
pub(super) fn open() {
    let until = Instant::now().checked_add(TIME);
    ACCOUNT.set(Account { rule: RULE, object: OBJECT, until });
}

/// Another rule begins.
pub(super) fn next_rule() {
    ACCOUNT.set(Account { rule: RULE, ..ACCOUNT.get() });
}

pub(super) fn spent() -> Option<Spent> {
    match ACCOUNT.get() {
        Account { object: 0, .. } => Some(Spent::Object),
        Account { rule: 0, .. } => Some(Spent::Rule),
        _ => None,
    }
}

fn spend(cost: usize) -> Result<(), ExecutionError> {
    let cost = u64::try_from(cost).unwrap_or(u64::MAX);
    let account = ACCOUNT.get();
    let late = account.until.is_some_and(|until| Instant::now() >= until);
    // What breaks a rule off is not done, so it does not count in full.
    let object = account.object.saturating_sub(cost.min(account.rule));
    let object = if late { 0 } else { object };
    ACCOUNT.set(Account { rule: account.rule.saturating_sub(cost), object, ..account });
    match spent() {
        None => Ok(()),
        Some(_) => Err(ExecutionError::function_error(STEP, "actual cost limit exceeded")),
    }
}

/// Lets an expression count.
pub(super) fn guard(expression: &mut IdedExpr) {
    guard_within(expression, "");
}

/// What a loop adds to its own outcome is not counted apart from the loop.
fn guard_within(expression: &mut IdedExpr, outcome: &str) {
    let mut below = |expression: &mut IdedExpr| guard_within(expression, outcome);
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| below(target));
            call.args.iter_mut().for_each(below);
            let first = call.args.first().map(|first| &first.expr);
            let of_loop = matches!(first, Some(Expr::Ident(name)) if name == outcome);
            if call.func_name == operators::ADD && !of_loop {
                wrap(expression, GROWN, Vec::new());
            }
        }
        Expr::Select(select) => below(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(below),
        Expr::Map(map) => each_of(&mut map.entries, &mut below),
        Expr::Struct(parts) => each_of(&mut parts.entries, &mut below),
        Expr::Comprehension(loops) => guard_loop(loops, outcome),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn each_of(entries: &mut [IdedEntryExpr], below: &mut impl FnMut(&mut IdedExpr)) {
    for entry in entries {
        match &mut entry.expr {
            EntryExpr::StructField(field) => below(&mut field.value),
            EntryExpr::MapEntry(entry) => {
                below(&mut entry.key);
                below(&mut entry.value);
            }
        }
    }
}

fn guard_loop(loops: &mut ComprehensionExpr, outcome: &str) {
    let cost = cost(&loops.loop_cond).saturating_add(cost(&loops.loop_step));
    guard_within(&mut loops.iter_range, outcome);
    guard_within(&mut loops.accu_init, outcome);
    guard_within(&mut loops.loop_step, &loops.accu_var.clone());
    guard_within(&mut loops.result, outcome);
    let cost = i64::try_from(cost).unwrap_or(i64::MAX);
    let cost = IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Int(CelInt::from(cost))) };
    wrap(&mut loops.loop_cond, STEP, vec![cost]);
}

fn wrap(expression: &mut IdedExpr, function: &str, more: Vec<IdedExpr>) {
    let inner = std::mem::take(expression);
    let id = inner.id;
    let args = [inner].into_iter().chain(more).collect();
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *expression = IdedExpr { id, expr: Expr::Call(call) };
}

/// How many steps an expression takes that runs once. Loops inside count for themselves.
fn cost(expression: &IdedExpr) -> usize {
    match &expression.expr {
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.map(cost).fold(1, usize::saturating_add)
        }
        Expr::Select(select) => cost(&select.operand).saturating_add(1),
        Expr::List(list) => list.elements.iter().map(cost).fold(1, usize::saturating_add),
        Expr::Map(map) => map.entries.len().saturating_add(1),
        Expr::Struct(parts) => parts.entries.len().saturating_add(1),
        Expr::Comprehension(loops) => cost(&loops.iter_range).saturating_add(1),
        Expr::Ident(_) => 1,
        Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

/// What guarded expressions call, and functions whose outcome may be far larger than what they are
/// given: those count before they begin.
pub(super) fn add_functions(context: &mut Context<'_>) {
    context.add_function(STEP, |holds: Cel, cost: i64| {
        spend(usize::try_from(cost).unwrap_or_default()).map(|()| holds)
    });
    context.add_function(GROWN, |value: Cel| spend(size(&value) / UNIT).map(|()| value));
    context.add_function("replace", replace);
    context.add_function("join", join);
    context.add_function("sets.contains", |all: List, some: List| {
        compare(&all, &some).map(|()| contains(&all, &some))
    });
    context.add_function("sets.equivalent", |one: List, other: List| {
        compare(&one, &other).map(|()| contains(&one, &other) && contains(&other, &one))
    });
    context.add_function("sets.intersects", |one: List, other: List| {
        compare(&one, &other).map(|()| one.iter().any(|item| other.contains(item)))
    });
}

type List = Arc<Vec<Cel>>;

fn compare(one: &[Cel], other: &[Cel]) -> Result<(), ExecutionError> {
    spend(one.len().saturating_mul(other.len()))
}

fn contains(all: &[Cel], some: &[Cel]) -> bool {
    some.iter().all(|item| all.contains(item))
}

fn size(value: &Cel) -> usize {
    match value {
        Cel::String(text) => text.len(),
        Cel::Bytes(bytes) => bytes.len(),
        Cel::List(items) => items.len(),
        Cel::Map(map) => map.map.len(),
        _ => 0,
    }
}

fn replace(
    This(text): This<Arc<String>>,
    Arguments(given): Arguments,
) -> Result<Cel, ExecutionError> {
    let (old, new, count) = match given.as_slice() {
        [Cel::String(old), Cel::String(new)] => (old, new, -1),
        [Cel::String(old), Cel::String(new), Cel::Int(count)] => (old, new, *count),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    // All of them, if it is below zero.
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let places = text.matches(old.as_str()).take(most).count();
    spend(places.saturating_mul(new.len()).saturating_add(text.len()) / UNIT)?;
    Ok(Cel::String(Arc::new(text.replacen(old.as_str(), new, places))))
}

fn join(This(parts): This<List>, Arguments(given): Arguments) -> Result<Cel, ExecutionError> {
    let between = match given.as_slice() {
        [] => "",
        [Cel::String(between)] => between.as_str(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let text = |part: &Cel| match part {
        Cel::String(text) => Ok(text.clone()),
        _ => Err(ExecutionError::NoSuchOverload),
    };
    let parts = parts.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let length = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
    spend(between.len().saturating_mul(parts.len()).saturating_add(length) / UNIT)?;
    let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
    Ok(Cel::String(Arc::new(parts.join(between))))
}

#[cfg(test)]
mod tests {
    use kube_cel::{KubeCelExt, cel::parser::Parser};

    use super::*;

    fn run(rule: &str, value: Cel) -> (Result<Cel, ExecutionError>, Option<Spent>) {
        let mut expression = Parser::new().parse(rule).unwrap();
        guard(&mut expression);
        let mut context = Context::default().with_all();
        add_functions(&mut context);
        context.add_variable_from_value("self", value);
        open();
        // The machine may be busy with other tests.
        ACCOUNT.set(Account { until: None, ..ACCOUNT.get() });
        let result = context.resolve(&expression);
        (result, spent())
    }

    fn numbers(count: i64) -> Cel {
        Cel::List(Arc::new((0..count).map(Cel::Int).collect()))
    }

    fn text(length: usize) -> Cel {
        Cel::String(Arc::new("a".repeat(length)))
    }

    #[test]
    fn what_is_cheap_is_let_through() {
        for rule in [
            "self.all(x, x >= 0)",
            "self.map(x, x + 1).size() == 100",
            "self.filter(x, x > 50).exists(x, x == 99)",
            "self.all(x, self.exists_one(y, x == y))",
            "self.map(x, string(x)).join(',').startsWith('0,1,')",
            "self.map(x, string(x)).join().startsWith('01')",
            "'aba'.replace('a', 'cc') == 'ccbcc' && 'aba'.replace('a', 'c', 1) == 'cba'",
            "'aba'.replace('a', '', 0) == 'aba' && 'aba'.replace('a', 'c', -1) == 'cbc'",
            "'ab'.replace('', '-') == '-a-b-'",
            "sets.contains(self, [1, 2]) && !sets.contains([1, 2], self)",
            "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent(self, [1])",
            "sets.intersects(self, [99, 100]) && !sets.intersects(self, [100])",
            "[1] + [2] == [1, 2] && 'a' + 'b' == 'ab'",
        ] {
            assert_eq!(run(rule, numbers(100)), (Ok(Cel::Bool(true)), None), "{rule}");
        }
    }

    #[test]
    fn what_is_costly_is_broken_off() {
        for (rule, value) in [
            ("self.all(x, self.all(y, self.all(z, z >= 0)))", numbers(300)),
            ("self.exists(x, self.exists(y, self.exists(z, z < 0)))", numbers(300)),
            ("self.map(x, self.map(y, self.filter(z, z > x))).size() == 0", numbers(60)),
            ("self.all(x, true || self.all(y, self.all(z, z < y)))", numbers(300_000)),
            ("self.replace('a', self).size() > 0", text(1_000_000)),
            ("self.replace('', self).size() > 0", text(1_000_000)),
            ("[1, 2, 3, 4, 5, 6, 7].map(x, self + self).size() > 0", text(1_000_000)),
            ("self.split('').join(self).size() > 0", text(10_000)),
            ("sets.contains(self, self)", numbers(10_000)),
            ("sets.equivalent(self, self)", numbers(10_000)),
            ("sets.intersects(self, self)", numbers(10_000)),
        ] {
            let (result, spent) = run(rule, value);
            assert_eq!(spent, Some(Spent::Rule), "{rule}: {result:?}");
        }
    }

    #[test]
    fn time_runs_out_too() {
        ACCOUNT.set(Account { rule: RULE, object: OBJECT, until: Some(Instant::now()) });
        assert!(spend(0).is_err());
        assert_eq!(spent(), Some(Spent::Object));
    }

    #[test]
    fn an_object_may_cost_as_much_as_ten_rules() {
        open();
        for _ in 0..10 {
            next_rule();
            assert_eq!(spent(), None);
            assert!(spend(999_999).is_ok());
        }
        next_rule();
        assert!(spend(10).is_err());
        assert_eq!(spent(), Some(Spent::Object));
    }
}
