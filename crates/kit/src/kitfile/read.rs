//! The YAML that users write, read as Go's `yaml.v3` reads it: what is not known is an error, and free
//! values are what they are there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
};

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::scalar;

/// What is nested deeper could not be read again from the config.
const DEPTH: usize = 100;
/// What all aliases may become.
const MOST: usize = 2_000_000;

/// What stands where.
enum Shape {
    Text,
    /// Any JSON.
    Free,
    List(&'static Shape),
    Fields(&'static [(&'static str, Shape)]),
}

use Shape::{Fields, Free, List, Text};

const KITFILE: Shape = Fields(&[
    ("manifestVersion", Text),
    (
        "package",
        Fields(&[
            ("name", Text),
            ("version", Text),
            ("description", Text),
            ("license", Text),
            ("authors", List(&Text)),
        ]),
    ),
    (
        "model",
        Fields(&[
            ("name", Text),
            ("path", Text),
            ("license", Text),
            ("framework", Text),
            ("format", Text),
            ("version", Text),
            ("description", Text),
            ("parts", List(&PART)),
            ("parameters", Free),
        ]),
    ),
    ("code", List(&Fields(&[("path", Text), ("description", Text), ("license", Text)]))),
    (
        "datasets",
        List(&Fields(&[
            ("name", Text),
            ("path", Text),
            ("description", Text),
            ("license", Text),
            ("parameters", Free),
            ("remotePath", Text),
            ("remoteHash", Text),
        ])),
    ),
    ("docs", List(&DESCRIBED)),
    ("prompts", List(&DESCRIBED)),
]);
const PART: Shape = Fields(&[("name", Text), ("path", Text), ("license", Text), ("type", Text)]);
const DESCRIBED: Shape = Fields(&[("path", Text), ("description", Text)]);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Text => "a text",
            Free => "a value",
            List(_) => "a list",
            Fields(_) => "fields and their values",
        })
    }
}

/// A Kitfile as the value that JSON would have. What is empty is left out.
pub(super) fn value(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree = Tree { parser: Parser::new_from_str(text), anchors: BTreeMap::new() };
    let root = tree.document()?;
    let value = Reading { left: MOST }.fixed(&root, &KITFILE, "a Kitfile")?;
    Ok(value.unwrap_or_else(|| Map::new().into()))
}

struct Node {
    line: usize,
    is: Is,
}

enum Is {
    Scalar { text: String, sense: Sense },
    List(Vec<Rc<Node>>),
    Map(Vec<(Rc<Node>, Rc<Node>)>),
}

/// How the text of a scalar is to be taken.
enum Sense {
    Plain,
    Literal,
    /// As its tag says, which nobody here knows.
    Tagged(String),
}

struct Tree<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, Rc<Node>>,
}

impl<'a> Tree<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        loop {
            match self.parser.next() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    /// The only one.
    fn document(&mut self) -> Result<Rc<Node>, String> {
        let mut root = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return root.ok_or_else(|| "it is empty".to_owned()),
                (Event::DocumentStart(..), span) if root.is_some() => {
                    return Err(at(span.start.line(), "there is a second document"));
                }
                (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                (event, span) => root = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Rc<Node>, String> {
        let line = span.start.line();
        if depth > DEPTH {
            return Err(at(line, "it is nested too deeply"));
        }
        let (is, anchor) = match event {
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                return known.ok_or_else(|| at(line, "something refers to itself"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let sense = sense(style, tag.as_deref());
                (Is::Scalar { text: text.into_owned(), sense }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            _ => return Err(at(line, "it makes no sense")),
        };
        let node = Rc::new(Node { line, is });
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Is, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Is::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Is, String> {
        let mut pairs = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Is::Map(pairs)),
                (event, span) => self.node(event, span, depth + 1)?,
            };
            let (event, span) = self.next()?;
            pairs.push((key, self.node(event, span, depth + 1)?));
        }
    }
}

fn sense(style: ScalarStyle, tag: Option<&Tag>) -> Sense {
    match tag {
        None if style == ScalarStyle::Plain => Sense::Plain,
        None => Sense::Literal,
        Some(tag) if tag.is_yaml_core_schema_tag("str") || tag.suffix().is_empty() => {
            Sense::Literal
        }
        Some(tag) => Sense::Tagged(format!("{}{}", tag.handle(), tag.suffix())),
    }
}

impl Node {
    fn is_plain(&self, wanted: &str) -> bool {
        matches!(&self.is, Is::Scalar { text, sense: Sense::Plain } if text == wanted)
    }

    fn is_null(&self) -> bool {
        ["", "~", "null", "Null", "NULL"].iter().any(|text| self.is_plain(text))
    }
}

fn at(line: usize, what: impl fmt::Display) -> String {
    format!("line {line}: {what}")
}

struct Reading {
    left: usize,
}

impl Reading {
    fn count(&mut self, node: &Node) -> Result<(), String> {
        self.left =
            self.left.checked_sub(1).ok_or_else(|| at(node.line, "it becomes too large"))?;
        Ok(())
    }

    /// Nothing where the value is null, as if it were not there.
    fn fixed(&mut self, node: &Node, shape: &Shape, name: &str) -> Result<Option<Value>, String> {
        self.count(node)?;
        if node.is_null() {
            return Ok(None);
        }
        Ok(Some(match (shape, &node.is) {
            (Free, _) => self.free(node)?,
            (Text, Is::Scalar { text, .. }) => text.as_str().into(),
            (List(shape), Is::List(items)) => {
                let items =
                    items.iter().filter_map(|item| self.fixed(item, shape, name).transpose());
                items.collect::<Result<_, _>>()?
            }
            (Fields(fields), Is::Map(_)) => {
                let mut map = Map::new();
                for (name, key, value) in self.pairs(node)? {
                    let known = fields.iter().find(|(known, _)| *known == name);
                    let Some((_, shape)) = known else {
                        return Err(at(key.line, format!("unknown field {name:?}")));
                    };
                    if let Some(value) = self.fixed(value, shape, name)? {
                        map.insert(name.to_owned(), value);
                    }
                }
                map.into()
            }
            _ => return Err(at(node.line, format!("{name} must be {shape}"))),
        }))
    }

    fn free(&mut self, node: &Node) -> Result<Value, String> {
        self.count(node)?;
        match &node.is {
            Is::Scalar { text, sense: Sense::Literal } => Ok(text.as_str().into()),
            Is::Scalar { text, sense: Sense::Plain } => scalar::resolve(text)
                .map_err(|_| at(node.line, format!("JSON has no word for {text}"))),
            Is::Scalar { sense: Sense::Tagged(tag), .. } => {
                Err(at(node.line, format!("the tag {tag} is not known")))
            }
            Is::List(items) => items.iter().map(|item| self.free(item)).collect(),
            Is::Map(_) => {
                let mut map = Map::new();
                for (name, key, value) in self.pairs(node)? {
                    // Go would make a map of it that cannot be JSON.
                    if !self.free(key)?.is_string() {
                        return Err(at(key.line, format!("the key {name} must be a text")));
                    }
                    map.insert(name.to_owned(), self.free(value)?);
                }
                Ok(map.into())
            }
        }
    }

    /// Of a map, with what `<<` brings in. The map's own come first and win.
    fn pairs<'a>(&mut self, node: &'a Node) -> Result<Vec<(&'a str, &'a Node, &'a Node)>, String> {
        let Is::Map(pairs) = &node.is else {
            return Err(at(node.line, "only maps can be merged into a map"));
        };
        let (mut found, mut merged, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (key, value) in pairs {
            self.count(key)?;
            let Is::Scalar { text, .. } = &key.is else {
                return Err(at(key.line, "a key must be a text"));
            };
            match &value.is {
                Is::List(maps) if key.is_plain("<<") => merged.extend(maps),
                _ if key.is_plain("<<") => merged.push(value),
                _ if !seen.insert(text.as_str()) => {
                    return Err(at(key.line, format!("{text} is there twice")));
                }
                _ => found.push((text.as_str(), &**key, &**value)),
            }
        }
        for map in merged {
            let pairs = self.pairs(map)?;
            found.extend(pairs.into_iter().filter(|(text, ..)| seen.insert(text)));
        }
        Ok(found)
    }
}
