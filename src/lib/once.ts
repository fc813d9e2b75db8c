/** Creates a value on the first call and returns the same one afterwards; a failed attempt is repeated. */
export function once<Value>(make: () => Value): () => Value {
  let cached: { value: Value } | undefined;
  return () => {
    cached ??= { value: make() };
    return cached.value;
  };
}
