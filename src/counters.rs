//! Declares each statistic once: its field, its description and its name for collectors. The structs of
//! statistics, their sums and their [`Measures`] are generated from that.

use std::time::Duration;

/// A statistic with its name and description.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name. It contains the unit, and counters end in `_total`.
    pub name: &'static str,
    /// Distinguishes statistics that share a name.
    pub label: Option<(&'static str, &'static str)>,
    /// Its value.
    pub value: Value,
    /// A short description.
    pub help: &'static str,
}

/// A value, and whether it counts or varies.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the two that every collector has")]
pub enum Value {
    /// It only grows, and was zero when the object that counts it was created.
    Counter(u64),
    /// The current value, which can go up and down.
    Gauge(f64),
}

/// Statistics with names for collectors.
///
/// Without the feature `metrics`, a few lines export them, here as text:
///
/// ```
/// use whitewater::metrics::{Measures, Value};
/// use whitewater::session::ServerStats;
///
/// fn text(stats: &impl Measures) -> String {
///     let mut lines = String::new();
///     stats.measures(&mut |measure| {
///         let labels = measure.label.map_or(String::new(), |(name, value)| format!("{{{name}=\"{value}\"}}"));
///         let value = match measure.value {
///             Value::Counter(count) => count.to_string(),
///             Value::Gauge(value) => value.to_string(),
///         };
///         lines += &format!("{}{labels} {value}\n", measure.name);
///     });
///     lines
/// }
/// assert!(text(&ServerStats::default()).contains("whitewater_server_sessions 0\n"));
/// ```
pub trait Measures {
    /// Visits every statistic, always in the same order.
    fn measures(&self, each: &mut dyn FnMut(Metric));
}

/// What a named field of statistics may be.
pub(crate) trait Figure {
    /// Reports its value, as a counter if the name says so.
    fn tell(&self, measure: Metric, each: &mut dyn FnMut(Metric));
}

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Figure for $int {
            fn tell(&self, measure: Metric, each: &mut dyn FnMut(Metric)) {
                let counts = measure.name.ends_with("_total");
                let value = if counts { Value::Counter(*self as u64) } else { Value::Gauge(*self as f64) };
                each(Metric { value, ..measure });
            }
        }
    )*};
}
integers! { u16 u32 u64 usize }

macro_rules! gauges {
    ($($type:ty: |$value:ident| $gauge:expr,)*) => {$(
        impl Figure for $type {
            fn tell(&self, measure: Metric, each: &mut dyn FnMut(Metric)) {
                let $value = *self;
                each(Metric { value: Value::Gauge($gauge), ..measure });
            }
        }
    )*};
}
gauges! {
    f64: |value| value,
    Option<f64>: |share| share.unwrap_or(f64::NAN),
    Duration: |time| time.as_secs_f64(),
    Option<Duration>: |time| time.unwrap_or_default().as_secs_f64(),
}

/// A statistic without its value. `doc` is the documentation of its field; its first sentence becomes the
/// description.
pub(crate) fn named(
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    doc: &'static str,
) -> Metric {
    let help = doc.trim().split(". ").next().unwrap_or_default().trim_end_matches('.');
    Metric { name, label, value: Value::Counter(0), help }
}

/// Declares a struct of statistics. After a field comes its name for collectors. Its help is the first
/// sentence of the field's documentation, or given with a label if several fields share the name. `all`
/// stands for the names in a nested struct.
///
/// `: AddAssign` adds two of them. `: sum of Other` has fields of `Other`, and a method `add`. The
/// fields after `counted by` belong to it as well, but are counted in a struct of their own, whose `show`
/// copies them.
macro_rules! stats {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(: $sum:ident $(of $other:ident)?)? {
            $($(#[doc = $doc:literal])* pub $field:ident: $type:ty
                $(=> $metric:tt $([$label:ident: $labelled:literal, $help:expr])? $(by $method:ident)?)?,)*
        }
        $(
            counted by $(#[$group_meta:meta])* $group:ident {
                $($(#[doc = $group_doc:literal])* pub $group_field:ident: $group_type:ty
                    $(=> $group_metric:tt $([$group_label:ident: $group_labelled:literal, $group_help:expr])?)?,)*
                $(; $extra:ident: $extra_type:ty)?
            }
        )*
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($($(#[doc = $group_doc])* pub $group_field: $group_type,)*)*
        }

        impl $crate::counters::Measures for $name {
            fn measures(&self, each: &mut dyn FnMut($crate::counters::Metric)) {
                $(stats!(@tell self each $field [$($doc)*]
                    $($metric $([$label: $labelled, $help])? $(by $method)?)?);)*
                $($(stats!(@tell self each $group_field [$($group_doc)*]
                    $($group_metric $([$group_label: $group_labelled, $group_help])?)?);)*)*
            }
        }

        stats! { @total [$($sum $(of $other)?)?] $name { $($field)* } }

        $(
            $(#[$group_meta])*
            #[derive(Clone, Debug, Default)]
            pub(super) struct $group {
                $(pub(super) $group_field: $group_type,)*
                $(pub(super) $extra: $extra_type,)?
            }

            impl $group {
                /// Copies the counters to where they are shown.
                pub(super) const fn show(&self, stats: &mut $name) {
                    $(stats.$group_field = self.$group_field;)*
                }
            }
        )*
    };
    (@tell $self:ident $each:ident $field:ident [$($doc:literal)*]) => {};
    (@tell $self:ident $each:ident $field:ident [$($doc:literal)*] all) => {
        $crate::counters::Measures::measures(&$self.$field, $each);
    };
    (@tell $self:ident $each:ident $field:ident [$($doc:literal)*] $metric:literal) => {
        let measure = $crate::counters::named($metric, None, concat!($($doc),*));
        $crate::counters::Figure::tell(&$self.$field, measure, $each);
    };
    (@tell $self:ident $each:ident $field:ident [$($doc:literal)*]
        $metric:literal [$label:ident: $labelled:literal, $help:expr]) => {
        let measure = $crate::counters::named($metric, Some((stringify!($label), $labelled)), $help);
        $crate::counters::Figure::tell(&$self.$field, measure, $each);
    };
    (@tell $self:ident $each:ident $field:ident [$($doc:literal)*]
        $metric:literal [$label:ident: $labelled:literal, $help:expr] by $method:ident) => {
        let measure = $crate::counters::named($metric, Some((stringify!($label), $labelled)), $help);
        $crate::counters::Figure::tell(&$self.$method(), measure, $each);
    };
    (@total [] $name:ident { $($field:ident)* }) => {};
    (@total [AddAssign] $name:ident { $($field:ident)* }) => {
        impl std::ops::AddAssign for $name {
            /// Adds every field.
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
    (@total [sum of $other:ident] $name:ident { $($field:ident)* }) => {
        impl $name {
            pub(super) fn add(&mut self, other: &$other) {
                $(self.$field += u64::from(other.$field);)*
            }
        }
    };
}

/// Declares counters of one kind, one for each reason why something was refused. `by Error` has one for each
/// variant of an error and counts them; `each a Reason` declares an enum of reasons.
macro_rules! reasons {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $int:ty {
            $($(#[$doc:meta])* $reason:ident,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $reason: $int,)*
        }

        impl $name {
            /// The sum of all reasons.
            #[must_use]
            pub fn total(&self) -> u64 {
                self.by_reason().into_iter().map(|(_, count)| count).sum()
            }

            /// Each count with the name of its field.
            #[must_use]
            pub fn by_reason(&self) -> [(&'static str, u64); [$(stringify!($reason)),*].len()] {
                [$((stringify!($reason), self.$reason.into())),*]
            }
        }

        stats! { @total [AddAssign] $name { $($reason)* } }

        impl $crate::counters::Figure for $name {
            fn tell(&self, measure: $crate::counters::Metric, each: &mut dyn FnMut($crate::counters::Metric)) {
                for (reason, count) in self.by_reason() {
                    let (label, value) = (Some(("reason", reason)), $crate::counters::Value::Counter(count));
                    each($crate::counters::Metric { label, value, ..measure });
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $int:ty, each a $kind:ident {
            $($(#[$doc:meta])* $reason:ident: $variant:ident,)*
        }
    ) => {
        reasons! {
            $(#[$meta])*
            pub struct $name: $int { $($(#[$doc])* $reason,)* }
        }

        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(super) enum $kind { $($variant,)* }

        impl $name {
            const fn counter(&mut self, reason: $kind) -> &mut $int {
                match reason {
                    $($kind::$variant => &mut self.$reason,)*
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $int:ty, by $error:ident {
            $($reason:ident: $variant:ident,)*
            $(; $($(#[$doc:meta])* $other:ident,)*)?
        }
    ) => {
        reasons! {
            $(#[$meta])*
            pub struct $name: $int {
                $(#[doc = concat!("[`", stringify!($error), "::", stringify!($variant), "`].")] $reason,)*
                $($($(#[$doc])* $other,)*)?
            }
        }

        impl $name {
            pub(super) const fn count(&mut self, error: &$error) {
                let count = match error {
                    $($error::$variant { .. } => &mut self.$reason,)*
                };
                *count = count.saturating_add(1); // anyone may drive this up for years
            }
        }
    };
}
