/** Finds the ends of strings in JSON text. On the hot path of capture and flag requests: every character counts. */

const backslash = 92;

/** Index of the closing quote of the string that opens at `open`; -1 if unterminated. */
export function closingQuote(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (text.charCodeAt(close - 1) === backslash && isEscaped(text, close))
    close = text.indexOf('"', close + 1);
  return close;
}

/** Whether the quote at `quote` is part of a string: an odd number of backslashes precedes it. */
export function isEscaped(text: string, quote: number): boolean {
  let first = quote - 1;
  while (text.charCodeAt(first) === backslash) first--;
  return (quote - first) % 2 === 0;
}
