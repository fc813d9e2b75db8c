/** JSON with exact numbers. */

// Integers beyond a double's precision are BigInt; they are serialized as numbers.
(BigInt.prototype as { toJSON?: unknown }).toJSON = function (this: bigint) {
  return (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON(String(this));
};

const longNumber = /\d{16}/;

/** Parses JSON; integers beyond 2^53 that would be rounded become BigInt, if the browser exposes the source text. */
export function parseJson(text: string): unknown {
  // Fast path: without long numbers no reviver is needed.
  if (!longNumber.test(text)) return JSON.parse(text);
  return JSON.parse(text, ((_: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
    return isRounded && /^-?[1-9]\d{15,}$/.test(source) ? BigInt(source) : value;
  }) as (name: string, value: unknown) => unknown);
}
