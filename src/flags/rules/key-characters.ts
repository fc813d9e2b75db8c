/** Valid characters of a flag's key, shared by the console and the CLI. */

export const keyCharacters = /^[a-zA-Z0-9_-]+$/;

export const keyCharactersInWords = "letters, digits, - and _";
