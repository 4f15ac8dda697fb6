//! Form fields for the parameters of an endpoint, derived from the OpenAPI document.
use api::Operation;
use api::openapi::parameter;
use domain::Catalogue;
use serde_json::Value;

use crate::dashboard::form::Form;
use crate::dashboard::page::{Part, parts};

/// Kind of input.
pub(crate) enum Control {
    /// At most one of the choices.
    Choice,
    /// Any number of the choices.
    Choices,
    Number,
    Text,
}

/// A selectable value.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) chosen: bool,
}

/// One parameter.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) meaning: Vec<Part>,
    pub(crate) in_path: bool,
    pub(crate) control: Control,
    pub(crate) choices: Vec<Choice>,
    /// Meaning of an empty field.
    pub(crate) hint: String,
    pub(crate) value: String,
    /// Why the service refused the value; empty if it did not.
    pub(crate) wrong: Vec<Part>,
}

impl Field {
    /// The field's name in the form.
    pub(crate) fn input(&self) -> String {
        format!("p_{}", self.name)
    }
}

/// The parameters of an endpoint in the document's order, with the submitted values. Deprecated ones are omitted.
pub(crate) fn of(endpoint: Operation, catalogue: &Catalogue, request: &Form) -> Vec<Field> {
    let all = parameter::all(catalogue);
    parameter::of(endpoint)
        .iter()
        .filter_map(|refer| refer.get("$ref")?.as_str()?.rsplit('/').next())
        .filter_map(|name| all.get(name))
        .filter(|parameter| {
            let place = parameter.get("in").and_then(Value::as_str);
            let is_old = parameter.get("deprecated").and_then(Value::as_bool) == Some(true);
            matches!(place, Some("path" | "query")) && !is_old
        })
        .map(|parameter| field(parameter, request))
        .collect()
}

fn field(parameter: &Value, request: &Form) -> Field {
    let text = |pointer: &str| {
        parameter.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = text("/name");
    let input = format!("p_{name}");
    let in_path = text("/in") == "path";
    let is_list = parameter.pointer("/schema/x-values").is_some();
    let allowed = allowed(parameter);
    let mut value = if is_list && !allowed.is_empty() {
        request.all(&input).filter(|value| !value.is_empty()).collect::<Vec<_>>().join(",")
    } else {
        request.get(&input).trim().to_owned()
    };
    if in_path
        && value.is_empty()
        && let Some(first) = allowed.first()
    {
        value.clone_from(first);
    }
    let control = match text("/schema/type").as_str() {
        "integer" => Control::Number,
        _ if allowed.is_empty() => Control::Text,
        _ if is_list => Control::Choices,
        _ => Control::Choice,
    };
    let is_chosen = |one: &String| value.split(',').any(|chosen| chosen == one);
    Field {
        meaning: parts(&text("/description")),
        in_path,
        choices: allowed
            .iter()
            .map(|one| Choice { value: one.clone(), chosen: is_chosen(one) })
            .collect(),
        hint: hint(parameter),
        control,
        name,
        value,
        wrong: Vec::new(),
    }
}

/// The allowed values, if the document lists them.
fn allowed(parameter: &Value) -> Vec<String> {
    ["/schema/enum", "/schema/x-values", "/schema/anyOf/0/enum"]
        .iter()
        .find_map(|pointer| parameter.pointer(pointer)?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

fn hint(parameter: &Value) -> String {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    let [least, most, default] = ["minimum", "maximum", "default"]
        .map(|fact| parameter.pointer(&format!("/schema/{fact}")).map(plain));
    let example = ["/example", "/schema/examples/0"]
        .iter()
        .find_map(|pointer| parameter.pointer(pointer))
        .map(|example| format!("such as {}", plain(example)));
    let bounds = least.zip(most).map(|(least, most)| format!("{least} to {most}"));
    let default = default.map(|default| format!("{default} unless given"));
    [bounds, default, example].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_the_document_is_a_field_and_nothing_else_is() {
        let catalogue = Catalogue::load(None).unwrap();
        let document = api::openapi::value(&catalogue);
        for endpoint in Operation::v1() {
            let Some(template) = endpoint.row().path else { continue };
            let documented =
                document["paths"][template]["parameters"].as_array().cloned().unwrap_or_default();
            let mut wanted: Vec<String> = documented
                .iter()
                .map(|refer| refer["$ref"].as_str().unwrap().rsplit('/').next().unwrap())
                .map(|own| document["components"]["parameters"][own]["name"].as_str().unwrap())
                .map(str::to_owned)
                .collect();
            let others = ["region", "If-None-Match", "Range", "If-Range", "Last-Event-ID"];
            wanted.retain(|name| !others.contains(&name.as_str()));
            let fields = of(endpoint, &catalogue, &Form::default());
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            assert_eq!(names, wanted, "{endpoint:?}");
            assert!(fields.iter().all(|field| !field.meaning.is_empty()));
        }
    }

    #[test]
    fn fields_take_what_the_document_allows() {
        let catalogue = Catalogue::load(None).unwrap();
        let form = Form::parse(b"p_regions=us&p_regions=eu&p_limit=7&p_market=spread").unwrap();
        let fields = of(Operation::GetOdds, &catalogue, &form);
        let find = |name: &str| fields.iter().find(|field| field.name == name).unwrap();
        assert_eq!(find("regions").value, "us,eu");
        assert!(matches!(find("regions").control, Control::Choices));
        assert_eq!(find("regions").choices.iter().filter(|choice| choice.chosen).count(), 2);
        assert_eq!(
            (find("limit").value.as_str(), find("limit").hint.as_str()),
            ("7", "1 to 500, 100 unless given")
        );
        assert!(matches!(find("limit").control, Control::Number));
        assert!(
            find("market").choices.iter().any(|choice| choice.value == "spread" && choice.chosen)
        );
        assert!(!find("sport_key").value.is_empty(), "a path is always whole");
        assert!(matches!(find("event_ids").control, Control::Text));
    }
}
