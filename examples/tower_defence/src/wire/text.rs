//! Texts by people: names and chat lines. Others see them in their terminals.

/// Whether a letter is visible. Not visible are those that terminals interpret (every escape sequence starts with one),
/// that change the direction of the following text, or that take no room, so that two names could look alike. Source:
/// Unicode, general category `Cc` and the property `Default_Ignorable_Code_Point`, with the separators of lines and
/// annotations.
#[must_use]
pub fn is_shown(letter: char) -> bool {
    let is_hidden = matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    !letter.is_control() && !is_hidden
}

/// The visible letters of a text.
#[must_use]
pub fn shown(text: &str) -> String {
    text.chars().filter(|letter| is_shown(*letter)).collect()
}
