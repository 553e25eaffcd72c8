//! The elements around the canvas. An element is only touched if what it shows has changed.

use std::collections::BTreeMap;
use wasm_bindgen::JsCast;
use web_sys::{Document, Element, HtmlElement};

/// The page's elements by selector, and what they show.
pub(crate) struct Dom {
    document: Document,
    found: BTreeMap<&'static str, Option<Element>>,
    shown: BTreeMap<(&'static str, &'static str), String>,
}

impl Dom {
    pub(crate) const fn new(document: Document) -> Self {
        Self { document, found: BTreeMap::new(), shown: BTreeMap::new() }
    }

    pub(crate) fn text(&mut self, selector: &'static str, text: &str) {
        if self.is_news(selector, "text", text)
            && let Some(element) = self.element(selector)
        {
            element.set_text_content(Some(text));
        }
    }

    pub(crate) fn class(&mut self, selector: &'static str, class: &'static str, is_on: bool) {
        if self.is_news(selector, class, if is_on { "1" } else { "0" })
            && let Some(element) = self.element(selector)
        {
            let _ = element.class_list().toggle_with_force(class, is_on); // it fails for names with blanks only
        }
    }

    pub(crate) fn style(&mut self, selector: &'static str, property: &'static str, value: &str) {
        if self.is_news(selector, property, value)
            && let Some(element) = self.element(selector)
            && let Some(element) = element.dyn_ref::<HtmlElement>()
        {
            let _ = element.style().set_property(property, value); // a value that it does not know changes nothing
        }
    }

    pub(crate) fn attribute(&mut self, selector: &'static str, name: &'static str, value: &str) {
        if self.is_news(selector, name, value)
            && let Some(element) = self.element(selector)
        {
            let _ = element.set_attribute(name, value);
        }
    }

    /// A list of items, each with a class. Text is set as text, so nobody's name becomes markup.
    pub(crate) fn list(&mut self, selector: &'static str, items: &[(&'static str, String)]) {
        let all: String = items.iter().map(|(class, text)| format!("{class}\t{text}\n")).collect();
        if !self.is_news(selector, "list", &all) {
            return;
        }
        let document = self.document.clone();
        let Some(list) = self.element(selector) else { return };
        list.set_text_content(None);
        for (class, text) in items {
            if let Ok(item) = document.create_element("li") {
                item.set_class_name(class);
                item.set_text_content(Some(text));
                let _ = list.append_child(&item);
            }
        }
        list.set_scroll_top(list.scroll_height());
    }

    fn is_news(&mut self, selector: &'static str, what: &'static str, value: &str) -> bool {
        let key = (selector, what);
        if self.shown.get(&key).is_some_and(|shown| shown == value) {
            return false;
        }
        self.shown.insert(key, value.to_owned());
        true
    }

    fn element(&mut self, selector: &'static str) -> Option<&Element> {
        let document = &self.document;
        let find = || document.query_selector(selector).ok().flatten();
        self.found.entry(selector).or_insert_with(find).as_ref()
    }
}
