//! The classes of the npm package.
