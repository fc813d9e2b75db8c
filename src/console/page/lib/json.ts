/** JSON whose numbers stay as they are written. */

// A whole number that a double does not hold is a BigInt here; it is written as the number that it is.
(BigInt.prototype as { toJSON?: unknown }).toJSON = function (this: bigint) {
  return (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON(String(this));
};

const longNumber = /\d{16}/;

/** Reads JSON; whole numbers beyond 2^53 that would be rounded come as BigInt, where the browser tells their digits. */
export function parseJson(text: string): unknown {
  // Most texts have none, and are read quicker without a look at each value.
  if (!longNumber.test(text)) return JSON.parse(text);
  return JSON.parse(text, ((_: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
    return isRounded && /^-?[1-9]\d{15,}$/.test(source) ? BigInt(source) : value;
  }) as (name: string, value: unknown) => unknown);
}
