/** Creates a value on the first call and returns the same one afterwards; a failed attempt is repeated. */
export function once<Made>(make: () => Made): () => Made {
  let made: { value: Made } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
