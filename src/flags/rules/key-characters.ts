/** What a flag's key is written with. The console's page and the commands say it from here. */

export const keyCharacters = /^[a-zA-Z0-9_-]+$/;

export const keyCharactersInWords = "letters, digits, - and _";
