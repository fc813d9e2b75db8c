/**
 * Checks values against the schemas of the OpenAPI document. Stricter than JSON Schema where the document
 * means more than it says: an object has no members but those that are described.
 */

type Schema = Record<string, unknown>;

const known = new Set([
  "type",
  "enum",
  "anyOf",
  "properties",
  "required",
  "items",
  "additionalProperties",
  "$ref",
  "format",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "description",
  "default",
  "readOnly",
  "writeOnly",
]);

/** The first fault as `path: what is wrong`, or undefined. */
export function getError(
  value: unknown,
  schema: Schema,
  components: Record<string, Schema>,
  path = "$",
): string | undefined {
  const unknown = Object.keys(schema).find((keyword) => !known.has(keyword));
  if (unknown) return `${path}: the schema has the unknown keyword ${unknown}`;
  if (typeof schema.$ref === "string") {
    const named = components[schema.$ref.replace("#/components/schemas/", "")];
    return named ? getError(value, named, components, path) : `${path}: ${schema.$ref} is missing`;
  }
  if (Array.isArray(schema.anyOf)) {
    const problems = schema.anyOf.map((branch) => getError(value, branch, components, path));
    return problems.includes(undefined) ? undefined : problems.find((problem) => !problem?.endsWith("null"));
  }
  if (Array.isArray(schema.enum) && !schema.enum.includes(value)) {
    return `${path}: ${JSON.stringify(value)} is not one of ${JSON.stringify(schema.enum)}`;
  }
  if (schema.type === undefined) return value === undefined ? `${path}: missing` : undefined;
  if (!isOfType(value, String(schema.type))) return `${path}: ${JSON.stringify(value)} is no ${schema.type}`;
  if (typeof value === "string") return stringError(value, schema, path);
  if (typeof value === "number") {
    const isInside = value >= Number(schema.minimum ?? value) && value <= Number(schema.maximum ?? value);
    return isInside ? undefined : `${path}: ${value} is out of range`;
  }
  if (Array.isArray(value)) {
    if (value.length < Number(schema.minItems ?? 0)) return `${path}: too few items`;
    if (value.length > Number(schema.maxItems ?? value.length)) return `${path}: too many items`;
    if (!schema.items) return undefined;
    return first(
      value.map((item, index) => getError(item, schema.items as Schema, components, `${path}[${index}]`)),
    );
  }
  return typeof value === "object" && value !== null
    ? objectError(value as Record<string, unknown>, schema, components, path)
    : undefined;
}

function objectError(
  value: Record<string, unknown>,
  schema: Schema,
  components: Record<string, Schema>,
  path: string,
): string | undefined {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const missing = ((schema.required ?? []) as string[]).find((name) => !Object.hasOwn(value, name));
  if (missing) return `${path}: ${missing} is missing`;
  if (schema.additionalProperties !== true) {
    const extra = Object.keys(value).find((name) => !Object.hasOwn(properties, name));
    if (extra) return `${path}: ${extra} is not described`;
  }
  return first(
    Object.entries(properties)
      .filter(([name]) => Object.hasOwn(value, name))
      .map(([name, inner]) => getError(value[name], inner, components, `${path}.${name}`)),
  );
}

function stringError(value: string, schema: Schema, path: string): string | undefined {
  if (value.length < Number(schema.minLength ?? 0)) return `${path}: empty`;
  if (schema.format === "date-time" && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(value)) {
    return `${path}: ${value} is no time of this API`;
  }
  if (schema.format === "uuid" && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)) {
    return `${path}: ${value} is no UUID`;
  }
  return undefined;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "integer":
      return Number.isSafeInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

const first = (problems: (string | undefined)[]) => problems.find((problem) => problem !== undefined);
