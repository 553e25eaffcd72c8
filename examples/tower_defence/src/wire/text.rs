//! What people write: names, and what is said. Others see it in their terminals.

/// Whether a letter is one to be seen. Not so are those that a terminal obeys (with them every escape sequence begins), that turn the
/// direction of what follows, or that take no room, by which two names would look alike. Source: Unicode, general category `Cc` and the
/// property `Default_Ignorable_Code_Point`, with the separators of lines and annotations.
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

/// A text without letters that are not to be seen.
#[must_use]
pub fn shown(text: &str) -> String {
    text.chars().filter(|letter| is_shown(*letter)).collect()
}
