/** Formats of webhooks: JSON templates whose strings contain placeholders such as `{{text}}`. */

import type { WebhookFormat } from "../../accounts/schema.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { WebhookContent } from "./content.ts";

/** Chat services reject longer messages: Discord accepts 2,000 characters. */
const textLengthMax = 1_800;
const templateLengthMax = 10_000;

interface Format {
  template: JsonObject;
  /** Prevents that names of flags and people are interpreted as markup. */
  quote(text: string): string;
}

const unescaped = (text: string) => text;
/** https://docs.slack.dev/messaging/formatting-message-text: these three begin links and mentions. */
const slackEscapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

const formats: Readonly<Record<"slack" | "discord", Format>> = {
  slack: {
    template: { text: "{{text}}\n{{url}}" },
    quote: (text) => text.replace(/[&<>]/g, (sign) => slackEscapes[sign]!),
  },
  // Without mentions: a flag called @everyone notifies no one.
  discord: {
    template: { content: "{{text}}\n{{url}}", allowed_mentions: { parse: [] } },
    quote: (text) => text.replace(/[\\*_~`|<>@#[\]]/g, "\\$&"),
  },
};

const placeholders = {
  id: ({ id }) => id,
  event: ({ event }) => event,
  text: ({ text }) => text,
  url: ({ url }) => url,
  created_at: ({ created_at }) => created_at,
  project: ({ project }) => project.name,
  project_id: ({ project }) => String(project.id),
} satisfies Record<string, (content: WebhookContent) => string>;
type Placeholder = keyof typeof placeholders;

const pattern = /\{\{ *([a-z_]+) *\}\}/g;

/** The format of a URL, by its host. */
export function getFormat(url: string): WebhookFormat {
  const { hostname, pathname } = new URL(url);
  if (hostname === "hooks.slack.com") return "slack";
  const isDiscord = /^(?:[a-z]+\.)?discord(?:app)?\.com$/.test(hostname);
  return isDiscord && pathname.startsWith("/api/webhooks/") ? "discord" : "json";
}

/** The request body of an event. */
export function formatBody(
  content: WebhookContent,
  format: WebhookFormat,
  template: JsonObject | null,
): string {
  if (format === "json") return JSON.stringify(content);
  if (format === "custom") return JSON.stringify(filled(template ?? {}, content, unescaped));
  const { template: own, quote } = formats[format];
  return JSON.stringify(filled(own, content, quote));
}

function filled(value: Json, content: WebhookContent, quote: (text: string) => string): Json {
  if (typeof value === "string")
    return value.replace(pattern, (whole, name: string) => {
      if (!Object.hasOwn(placeholders, name)) return whole;
      const text = placeholders[name as Placeholder](content);
      const shown = name === "url" ? text : quote(text);
      return shown.length <= textLengthMax ? shown : `${shown.slice(0, textLengthMax)}…`;
    });
  if (Array.isArray(value)) return value.map((each) => filled(each, content, quote));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, filled(each, content, quote)]),
  );
}

/**
 * Checks a template. @throws {InvalidFieldError} on `template`: missing for the format `custom`, given for another one, too
 * long, or with unknown placeholders.
 */
export function checkTemplate(format: WebhookFormat, template: JsonObject | null): void {
  if (format !== "custom") {
    if (template !== null) throw invalid(`The format ${format} has its own template. Use the format custom.`);
    return;
  }
  if (template === null) throw invalid("The format custom requires a template.");
  const text = JSON.stringify(template);
  if (text.length > templateLengthMax)
    throw invalid(`Ensure this field has no more than ${templateLengthMax} characters.`, "max_length");
  for (const [, name] of text.matchAll(pattern)) {
    if (Object.hasOwn(placeholders, name!)) continue;
    const known = Object.keys(placeholders).map((each) => `{{${each}}}`);
    throw invalid(`Unknown placeholder {{${name}}}. Known: ${known.join(", ")}.`);
  }
}

function invalid(message: string, code = "invalid_input"): InvalidFieldError {
  return new InvalidFieldError("template", code, message);
}
