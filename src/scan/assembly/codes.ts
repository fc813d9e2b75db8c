/** Character codes of JSON, AssemblyScript. */

export const newline: u8 = 10;
export const quote: u8 = 34;
export const comma: u8 = 44;
export const colon: u8 = 58;
export const openBracket: u8 = 91;
export const backslash: u8 = 92;
export const closeBracket: u8 = 93;
export const letterF: u8 = 102;
export const letterN: u8 = 110;
export const letterT: u8 = 116;
export const openBrace: u8 = 123;
export const closeBrace: u8 = 125;
