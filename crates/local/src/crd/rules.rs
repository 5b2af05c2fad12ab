//! Validation rules in CEL: read once per schema, run at each node of an object.
//!
//! The walk is ours: an item of a list continues the old item with the same keys, not the one that
//! stood at its place.

use std::{
    cell::RefCell,
    collections::HashMap,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, Value as Cel,
        common::ast::Expr,
        extractors::This,
        objects::OptionalValue,
        parser::{Expression, Parser},
    },
};
use regex::Regex;
use serde_json::Value;

use super::{
    budget::{self, Spent},
    causes,
    check::{Correlated, same},
    path::Path,
    room,
    schema::{Kind, Schema, text},
    values,
};
use crate::error::{Cause, CauseReason};

const UNREADABLE: &str = "the expression cannot be read";

#[derive(Debug)]
pub(super) struct Rule {
    text: String,
    /// Whether it is read, run and dropped where there is room.
    pub(super) deep: bool,
    expression: Expression,
    /// A transition rule: it speaks of the value before.
    uses_old: bool,
    /// With `oldSelf` as an optional, so that the rule is run on new values too.
    optional_old: bool,
    message: Option<String>,
    message_expression: Option<Expression>,
    reason: CauseReason,
    field_path: Option<String>,
}

impl Rule {
    /// Fails with what is wrong, and in which field of the rule.
    pub(super) fn read(raw: &Value) -> Result<Self, (&'static str, String)> {
        let mut deep = false;
        for field in ["rule", "messageExpression"] {
            deep |= room::is_deep(text(raw, field).unwrap_or_default())
                .map_err(|error| (field, error))?;
        }
        match deep {
            false => Self::compile(raw, deep),
            true => room::with_room(|| Self::compile(raw, deep))
                .unwrap_or_else(|| Err(("rule", UNREADABLE.to_owned()))),
        }
    }

    fn compile(raw: &Value, deep: bool) -> Result<Self, (&'static str, String)> {
        let rule = text(raw, "rule").unwrap_or_default().trim();
        let expression = parse(rule).map_err(|error| ("rule", error))?;
        let message_expression = text(raw, "messageExpression")
            .map(|text| parse(text).map_err(|error| ("messageExpression", error)))
            .transpose()?;
        let optional_old = raw.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default();
        let message = text(raw, "message").map(str::trim).filter(|message| !message.is_empty());
        Ok(Self {
            text: rule.to_owned(),
            deep,
            uses_old: expression.references().has_variable("oldSelf"),
            expression,
            optional_old,
            message: message.map(str::to_owned),
            message_expression,
            reason: match text(raw, "reason") {
                Some("FieldValueRequired") => CauseReason::Required,
                Some("FieldValueForbidden") => CauseReason::Forbidden,
                Some("FieldValueDuplicate") => CauseReason::Duplicate,
                _ => CauseReason::Invalid,
            },
            field_path: text(raw, "fieldPath").map(field_path),
        })
    }

    /// How errors of evaluation name the rule.
    fn name(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }

    fn run(&self, node: &Node<'_>, context: &Context<'_>) -> Option<Cause> {
        let path = node.path;
        budget::next_rule();
        let result = evaluate(&self.expression, context);
        if let Some(spent) = budget::spent() {
            return Some(self.too_costly(node, spent));
        }
        match result {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => {
                let detail = self.detail(context);
                let full = self.field_path.as_ref().map(|below| join(path, below));
                let at = full.as_deref().map_or(*path, Path::Text);
                Some(self.cause(node, &at, &detail))
            }
            Err(error) => {
                let detail = match error {
                    ExecutionError::NoSuchOverload => format!(
                        "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        self.name()
                    ),
                    // The library forgets which argument a function did not get.
                    ExecutionError::MissingArgumentOrTarget => {
                        let found = missing(&self.expression, context);
                        format!(
                            "{} evaluating rule: {}",
                            words(&found.unwrap_or(error)),
                            self.name()
                        )
                    }
                    error => format!("{} evaluating rule: {}", words(&error), self.name()),
                };
                let value = Value::String(node.schema.type_name().to_owned());
                Some(causes::invalid(path, &value, &detail))
            }
        }
    }

    fn too_costly(&self, node: &Node<'_>, spent: Spent) -> Cause {
        let detail = match spent {
            Spent::Rule => format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                self.name()
            ),
            Spent::Object => "validation failed due to running out of cost budget, no further validation rules will be run".to_owned(),
        };
        let value = Value::String(node.schema.type_name().to_owned());
        causes::invalid(node.path, &value, &detail)
    }

    fn detail(&self, context: &Context<'_>) -> String {
        let computed = self.message_expression.as_ref().and_then(|expression| {
            match evaluate(expression, context) {
                Ok(Cel::String(text)) => Some(text.trim().to_owned()),
                _ => None,
            }
        });
        let usable = computed.filter(|text| !text.is_empty() && !text.contains('\n'));
        usable
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }

    fn cause(&self, node: &Node<'_>, at: &Path<'_>, detail: &str) -> Cause {
        let whole = matches!(node.schema.kind, Some(Kind::Object | Kind::Array));
        match self.reason {
            CauseReason::Required => causes::required(at, detail),
            CauseReason::Forbidden => causes::forbidden(at, detail),
            CauseReason::Duplicate if whole => causes::duplicate_whole(at),
            CauseReason::Duplicate => causes::duplicate(at, node.value),
            _ if whole => causes::invalid_whole(at, detail),
            _ => causes::invalid(at, node.value, detail),
        }
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        if self.deep {
            let expressions = (mem::take(&mut self.expression), self.message_expression.take());
            // Without room they would take the process along.
            room::with_room(move || drop(expressions));
        }
    }
}

/// A rule by the names and in the order that its fields have inside of Kubernetes.
fn shown(raw: &Value) -> String {
    let fields = [
        ("Rule", "rule", Value::from("")),
        ("Message", "message", "".into()),
        ("MessageExpression", "messageExpression", "".into()),
        ("Reason", "reason", Value::Null),
        ("FieldPath", "fieldPath", "".into()),
        ("OptionalOldSelf", "optionalOldSelf", Value::Null),
    ];
    let fields =
        fields.map(|(name, field, none)| format!("{name:?}:{}", raw.get(field).unwrap_or(&none)));
    format!("{{{}}}", fields.join(","))
}

/// What is wrong with a rule as it is declared.
pub(super) fn problems(raw: &Value, path: &Path<'_>, loose: Option<&str>, causes: &mut Vec<Cause>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let rule_text = text(raw, "rule").unwrap_or_default();
    if rule_text.trim().is_empty() {
        return causes.push(causes::required(&path.field("rule"), "rule is not specified"));
    }
    let message = text(raw, "message");
    let said = |name: &str, detail: &str| {
        let value = raw.get(name).cloned().unwrap_or_default();
        causes::invalid(&path.field(name), &value, detail)
    };
    match message.map(str::trim) {
        Some("") if message != Some("") => {
            causes.push(said("message", "must be non-empty if specified"))
        }
        Some(text) if text.contains('\n') => {
            causes.push(said("message", "must not contain line breaks"))
        }
        None | Some("") if rule_text.trim().contains('\n') => {
            let detail = "message must be specified if rule contains line breaks";
            causes.push(causes::required(&path.field("message"), detail));
        }
        _ => {}
    }
    if let Some(reason) = text(raw, "reason").filter(|reason| !REASONS.contains(reason)) {
        let at = path.field("reason");
        causes.push(causes::not_supported(&at, &Value::from(reason), &REASONS.map(str::to_owned)));
    }
    match Rule::read(raw) {
        Err((name, error)) => {
            // The lines that show the place are set off from the first.
            let error = error.to_string().replace("\n|", "\n |");
            let detail = format!("{}: compilation failed: {error}", shown(raw));
            causes.push(causes::invalid_whole(&path.field(name), &detail));
        }
        Ok(rule) if rule.uses_old && !rule.optional_old => {
            if let Some(loose) = loose {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
                );
                causes.push(said("rule", &detail));
            }
        }
        Ok(rule) if rule.optional_old && !rule.uses_old => {
            let detail = "may not be set if oldSelf is not used in rule";
            causes.push(said("optionalOldSelf", detail));
        }
        Ok(_) => {}
    }
}

/// One value of the walk with what it was before.
struct Node<'a> {
    schema: &'a Schema,
    value: &'a Value,
    old: Option<&'a Value>,
    path: &'a Path<'a>,
    /// Of a whole object, whose metadata rules may read.
    root: bool,
}

/// Runs all rules that bear on the value.
pub(super) fn check(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    if !schema.has_rules {
        return Vec::new();
    }
    if !schema.has_deep_rules {
        return run(schema, value, old);
    }
    let causes = room::with_room(|| run(schema, value, old));
    causes.unwrap_or_else(|| {
        vec![causes::invalid(&Path::Root, &Value::Null, "the rules cannot be run")]
    })
}

fn run(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    budget::open();
    FUNCTIONS.with(|functions| {
        let root = Path::Root;
        let node = Node { schema, value, old, path: &root, root: true };
        visit(&node, functions, &mut causes);
    });
    causes
}

thread_local! {
    // Filling in the functions takes longer than most rules.
    static FUNCTIONS: Context<'static> = functions();
    // So does reading a pattern.
    static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// How many patterns are remembered: what an object says may be part of one.
const PATTERNS_KEPT: usize = 64;

/// All functions of Kubernetes, and the names of types, which the library does not know.
fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Cel| -> Result<Cel, ExecutionError> {
        Ok(type_name(&value))
    });
    context.add_function("matches", matches);
    budget::add_functions(&mut context);
    for name in ["string", "int", "uint", "double", "bool", "bytes", "list", "map", "null_type"] {
        context.add_variable_from_value(name, type_name_value(name));
    }
    context
}

fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    PATTERNS.with_borrow_mut(|known| {
        if let Some(pattern) = known.get(&*pattern) {
            return Ok(pattern.is_match(&text));
        }
        let read = Regex::new(&pattern).map_err(|error| {
            let text = format!("'{pattern}' not a valid regex:\n{error}");
            ExecutionError::function_error("matches", text)
        })?;
        let is_match = read.is_match(&text);
        if known.len() == PATTERNS_KEPT {
            known.clear();
        }
        known.insert(String::clone(&pattern), read);
        Ok(is_match)
    })
}

fn type_name(value: &Cel) -> Cel {
    type_name_value(match value {
        Cel::String(_) => "string",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::Bool(_) => "bool",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        _ => "other",
    })
}

fn type_name_value(name: &str) -> Cel {
    Cel::String(Arc::new(format!("type {name}")))
}

fn visit(node: &Node<'_>, functions: &Context<'_>, causes: &mut Vec<Cause>) {
    let Node { schema, value, old, path, root } = *node;
    if value.is_null() || !schema.has_rules || budget::spent().is_some() {
        return;
    }
    run_rules(node, functions, causes);
    let mut down = |schema: &Schema, value: &Value, old: Option<&Value>, path: &Path<'_>| {
        visit(&Node { schema, value, old, path, root: false }, functions, causes);
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                // Metadata is the server's own business.
                if (root || schema.embedded) && name == "metadata" {
                    continue;
                }
                let old = old.and_then(|old| old.get(name));
                if let Some(property) = schema.properties.get(name) {
                    down(property, value, old, &path.field(name));
                } else if let Some(other) = schema.additional.schema() {
                    down(other, value, old, &path.key(name));
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return };
            let old_items = Correlated::new(schema, old);
            for (index, item) in items.iter().enumerate() {
                down(of_items, item, old_items.of(item), &path.index(index));
            }
        }
        _ => {}
    }
}

fn run_rules(node: &Node<'_>, functions: &Context<'_>, causes: &mut Vec<Cause>) {
    let old = node.old.filter(|old| !old.is_null());
    let unchanged = old.is_some_and(|old| same(old, node.value));
    let due = |rule: &&Rule| {
        let comparable = !rule.uses_old || rule.optional_old || old.is_some();
        comparable && (rule.uses_old || !unchanged)
    };
    let due: Vec<&Rule> = node.schema.rules.iter().filter(due).collect();
    if due.is_empty() {
        return;
    }
    let mut context = functions.new_inner_scope();
    context.add_variable_from_value("self", values::convert(node.schema, node.value, node.root));
    let old = due.iter().any(|rule| rule.uses_old).then_some(old).flatten().map(|old| {
        let old = values::align(node.schema, node.value, old);
        values::convert(node.schema, &old, node.root)
    });
    for rule in due {
        let cause = if rule.optional_old {
            let old = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            let mut context = context.new_inner_scope();
            context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
            rule.run(node, &context)
        } else if let Some(old) = old.clone() {
            let mut context = context.new_inner_scope();
            context.add_variable_from_value("oldSelf", old);
            rule.run(node, &context)
        } else {
            rule.run(node, &context)
        };
        causes.extend(cause);
        if budget::spent().is_some() {
            return;
        }
    }
}

/// The parser and some functions are not ours, and a rule is anybody's text: whatever they make of it,
/// the server goes on.
fn parse(text: &str) -> Result<Expression, String> {
    let parsed = catch_unwind(|| Parser::new().enable_optional_syntax(true).parse(text));
    match parsed {
        Ok(Ok(mut expression)) => {
            budget::guard(&mut expression);
            Ok(expression)
        }
        Ok(Err(errors)) => Err(errors.to_string()),
        Err(_) => Err(UNREADABLE.to_owned()),
    }
}

fn evaluate(expression: &Expression, context: &Context<'_>) -> Result<Cel, ExecutionError> {
    let result = catch_unwind(AssertUnwindSafe(|| context.resolve(expression)));
    result.unwrap_or_else(|_| Err(ExecutionError::function_error("rule", "evaluation broke off")))
}

/// Errors as cel-go words them, where it has the same.
fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::FunctionError { function, message } => match function.as_str() {
            "duration" => conversion("google.protobuf.Duration"),
            "timestamp" => conversion("google.protobuf.Timestamp"),
            "int" | "uint" | "double" => conversion(function),
            _ => message.clone(),
        },
        other => other.to_string(),
    }
}

fn conversion(to: &str) -> String {
    format!("type conversion error from 'string' to '{to}'")
}

/// The first field that an expression reads and does not find.
fn missing(expression: &Expression, context: &Context<'_>) -> Option<ExecutionError> {
    match &expression.expr {
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.into_iter().find_map(|part| missing(part, context))
        }
        Expr::Select(select) if !select.test => match evaluate(expression, context) {
            Err(error @ ExecutionError::NoSuchKey(_)) => Some(error),
            _ => missing(&select.operand, context),
        },
        _ => None,
    }
}

/// `.a.b['c.d']` as messages write it: `a.b[c.d]`.
fn field_path(text: &str) -> String {
    let plain = text.replace("['", "[").replace("']", "]");
    plain.trim_start_matches('.').to_owned()
}

fn join(path: &Path<'_>, below: &str) -> String {
    let path = path.to_string();
    match path.is_empty() || below.starts_with('[') {
        true => format!("{path}{below}"),
        false => format!("{path}.{below}"),
    }
}
