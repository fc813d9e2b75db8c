/**
 * What variants of web experiments change on a page. posthog-js applies them on the pages of every visitor: permission to
 * edit experiments must not allow running scripts there, so HTML and CSS are checked when they are saved.
 *
 * Source: contract, experiments 1.6. Messages are those of PostHog.
 */

import { InvalidFieldError } from "../lib/errors.ts";
import { isSafeLink, sanitizeHtml, unsafeCss } from "../lib/html.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";

const transformsMax = 100;
const textLengthMax = 10_000;
const attributesMax = 50;
/** Attributes that run no scripts and load nothing. `cssClass` is the name of `class` in older versions of posthog-js. */
const safeAttributes = ["alt", "title", "placeholder", "aria-label", "class", "cssClass"];
/** The variant that changes nothing. */
export const control = "control";
const urlMatches = ["exact", "is_not", "regex", "not_regex", "icontains", "not_icontains"];
const utmNames = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"];

function fail(message: string): never {
  throw new InvalidFieldError("variants", "invalid_input", message);
}

export interface WebVariants {
  /** By variant, without the shares, which are the flag's. */
  variants: JsonObject;
  /** Variants of the flag. */
  shares: JsonObject[];
}

/** @throws {InvalidFieldError} */
export function readWebVariants(sent: JsonObject): WebVariants {
  if (!Object.hasOwn(sent, control)) fail("Experiment should contain a control variant");
  const entries = Object.entries(sent).map(([key, variant]) => {
    if (!isJsonObject(variant)) return fail(`Experiment variant '${key}' must be an object`);
    const share = variant.rollout_percentage;
    if (typeof share !== "number")
      return fail(`Experiment variant '${key}' does not have any rollout percentage`);
    return { key, share, read: readVariant(key, variant) };
  });
  return {
    variants: Object.fromEntries(entries.map(({ key, read }) => [key, read])),
    shares: entries.map(({ key, share }) => ({ key, rollout_percentage: share })),
  };
}

function readVariant(key: string, { transforms, conditions }: JsonObject): JsonObject {
  if (key === control && (transforms === undefined || transforms === null)) return {};
  if (!Array.isArray(transforms) || transforms.length === 0)
    return fail(`Experiment variant '${key}' does not have any element transforms`);
  if (transforms.length > transformsMax)
    fail(`Experiment variant '${key}' has ${transforms.length} transforms; the maximum is ${transformsMax}`);
  return {
    transforms: transforms.map((transform, index) => readTransform(transform, index, key)),
    ...(isJsonObject(conditions) ? { conditions: readConditions(conditions, key) } : {}),
  };
}

/** Only known members are kept: older versions of posthog-js apply others without checks. */
function readTransform(sent: Json, index: number, key: string): JsonObject {
  const name = `Experiment transform [${index}] variant '${key}'`;
  if (!isJsonObject(sent) || typeof sent.selector !== "string" || sent.selector.trim() === "")
    return fail(`${name} does not have a valid selector`);
  const read: JsonObject = { selector: getText(sent.selector, `${name}: selector`) };
  if (isSet(sent.text)) read.text = getText(sent.text, `${name}: text`);
  if (isSet(sent.html)) read.html = sanitizeHtml(getText(sent.html, `${name}: html`));
  if (isSet(sent.css)) {
    const css = getText(sent.css, `${name}: css`);
    if (unsafeCss.test(css)) fail(`${name}: css must not load anything or contain \`<\` or \`\\\``);
    read.css = css;
  }
  if (isSet(sent.imgUrl)) {
    const url = getText(sent.imgUrl, `${name}: imgUrl`);
    if (!url.startsWith("https:") || !isSafeLink(url))
      fail(`${name}: imgUrl must be a URL that starts with https://`);
    read.imgUrl = url;
  }
  const attributes = readAttributes(sent.attributes, `${name}: attributes`);
  if (attributes.length > 0) read.attributes = attributes;
  if (Object.keys(read).length === 1) fail(`${name} must have text, html, css, imgUrl or safe attributes`);
  return read;
}

/** Safe attributes; others are dropped, like unknown tags. */
function readAttributes(sent: Json | undefined, name: string): JsonObject[] {
  if (!isSet(sent)) return [];
  if (!Array.isArray(sent) || sent.length > attributesMax)
    return fail(`${name} must be a list of at most ${attributesMax} objects with name and value`);
  return sent.filter(isJsonObject).flatMap(({ name: attribute, value }) => {
    const isLink = attribute === "href" && typeof value === "string" && isSafeLink(value);
    if (!isLink && !safeAttributes.includes(attribute as string)) return [];
    return [{ name: attribute!, value: getText(value ?? "", name) }];
  });
}

const isSet = (value: Json | undefined): value is Json => value !== undefined && value !== null;

function getText(value: Json, name: string): string {
  if (typeof value === "string" && value.length <= textLengthMax) return value;
  return fail(`${name} must be a text of at most ${textLengthMax.toLocaleString("en-US")} characters`);
}

function readConditions({ url, urlMatchType, utm }: JsonObject, key: string): JsonObject {
  const read: JsonObject = {};
  if (isSet(url)) read.url = getText(url, `Experiment variant '${key}': url`);
  if (isSet(urlMatchType)) {
    if (!urlMatches.includes(urlMatchType as string))
      fail(`Experiment variant '${key}': urlMatchType must be one of: ${urlMatches.join(", ")}`);
    read.urlMatchType = urlMatchType;
  }
  if (isJsonObject(utm))
    read.utm = Object.fromEntries(
      utmNames.flatMap((name) => (isSet(utm[name]) ? [[name, getText(utm[name], name)] as const] : [])),
    );
  return read;
}
