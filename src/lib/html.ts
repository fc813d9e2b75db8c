/** HTML written by users of the console that browsers of visitors render: few tags, no attribute but `href`. */

import { once } from "./concurrency.ts";

const allowedTags = ["b", "i", "em", "strong", "u", "br", "p", "ul", "ol", "li", "a"];
/** CSS that loads something from elsewhere, or leaves the style sheet. */
export const unsafeCss = /url\s*\(|@import|expression\s*\(|image-set\s*\(|[<\\]/i;
/** Deeper elements are discarded. */
const nestingMax = 20;

/** Loaded with the first text of this kind: its parsers would delay the start. */
const sanitizer = once(() => require("sanitize-html") as typeof import("sanitize-html"));

/** Whether a link opens a page by HTTPS or an e-mail; other schemes, such as `javascript:`, would run in the page. */
export function isSafeLink(url: string): boolean {
  return /^(https:\/\/|mailto:)[^\s]+$/i.test(url);
}

/** The text with allowed tags and links only. */
export function sanitizeHtml(html: string): string {
  return sanitizer()(html, {
    allowedTags,
    allowedAttributes: { a: ["href"] },
    nestingLimit: nestingMax,
    allowedSchemes: ["https", "mailto"],
    allowProtocolRelative: false,
    transformTags: {
      a: (tagName, { href }) => ({
        tagName,
        attribs: (href !== undefined && isSafeLink(href) ? { href } : {}) as Record<string, string>,
      }),
    },
  });
}
