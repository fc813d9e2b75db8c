/** Where strings of a JSON text end. Captures and flag requests are read with it: every character counts. */

const backslash = 92;

/** Place of the quote that ends the string whose opening quote stands at `open`; -1 for a string without an end. */
export function closingQuote(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (text.charCodeAt(close - 1) === backslash && isEscaped(text, close))
    close = text.indexOf('"', close + 1);
  return close;
}

/** Whether the quote at `quote` is part of a string: an odd number of backslashes stands before it. */
export function isEscaped(text: string, quote: number): boolean {
  let first = quote - 1;
  while (text.charCodeAt(first) === backslash) first--;
  return (quote - first) % 2 === 0;
}
