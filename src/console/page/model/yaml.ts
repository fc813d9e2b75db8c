/** Formats JSON values as YAML. Pure. */

const plainText = /^[A-Za-z_][\w ./@+-]*$/;
const wordsOfYaml = new Set(["true", "false", "null", "yes", "no", "on", "off", "y", "n"]);

/** YAML of a value with a trailing newline. */
export function toYaml(value: unknown): string {
  return `${block(value, 0).replace(/^\n/, "")}\n`;
}

function block(value: unknown, depth: number): string {
  const indent = "  ".repeat(depth);
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return value.map((item) => `\n${indent}- ${block(item, depth + 1).replace(/^\n\s*/, "")}`).join("");
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, member]) => member !== undefined);
    if (entries.length === 0) return "{}";
    return entries
      .map(([name, member]) => {
        const text = block(member, Array.isArray(member) ? depth + 1 : depth + 1);
        return `\n${indent}${scalar(name)}:${text.startsWith("\n") ? "" : " "}${text}`;
      })
      .join("");
  }
  return scalar(value);
}

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value ?? null);
  const isPlain = plainText.test(value) && !value.endsWith(" ") && !wordsOfYaml.has(value.toLowerCase());
  return isPlain ? value : JSON.stringify(value);
}
