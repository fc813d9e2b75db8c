/** Web experiments in API responses: what each variant changes on pages. */

import { request } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { lazyMessages } from "../messages/later.ts";

export type ContentKind = keyof typeof lazyMessages.webExperiments.contents;

/** A change of the elements that match a selector. */
export interface Transform {
  selector: string;
  text?: string;
  html?: string;
  css?: string;
}

/** A change in the editor. */
export interface EditedTransform extends Transform {
  /** The typed text while the content stays unchanged: choosing another kind shows it again. */
  unused?: string;
}

export const utmNames = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"] as const;

export interface WebConditions {
  url?: string;
  urlMatchType?: string;
  utm?: Partial<Record<(typeof utmNames)[number], string>>;
}

/** A variant as the API has it. */
interface SentVariant {
  rollout_percentage: number;
  transforms?: Transform[];
  conditions?: WebConditions;
}

export interface WebVariant {
  key: string;
  /** Known by this, not by the key: another key may equal the control's while it is typed. */
  isControl: boolean;
  rollout_percentage: number;
  transforms: EditedTransform[];
  conditions: WebConditions;
}

export interface WebExperiment {
  id: number;
  name: string;
  feature_flag_key: string;
  variants: Record<string, SentVariant>;
}

/** Shows the pages as they are; the API requires it. */
const controlKey = "control";

export const webExperimentPath = (id: number) => inProject(`web_experiments/${id}/`);

export const freshTransform = (): EditedTransform => ({ selector: "", text: "" });

/** Variants in order; each but the control has at least one change to fill in. */
export const readWebVariants = ({ variants }: WebExperiment): WebVariant[] =>
  Object.entries(variants).map(([key, { rollout_percentage, transforms = [], conditions = {} }]) => ({
    key,
    isControl: key === controlKey,
    rollout_percentage,
    transforms: transforms.length > 0 || key === controlKey ? transforms : [freshTransform()],
    conditions,
  }));

/** Whether a variant other than the control changes something. */
export const hasChanges = ({ variants }: WebExperiment): boolean =>
  Object.values(variants).some(({ transforms = [] }) => transforms.length > 0);

const isFilled = (text: string | undefined): text is string => text !== undefined && text.trim() !== "";

function toSentConditions({ url, urlMatchType, utm = {} }: WebConditions): WebConditions {
  const filled = Object.entries(utm).filter(([, value]) => isFilled(value));
  return {
    ...(isFilled(url) ? { url: url.trim(), urlMatchType: urlMatchType ?? "icontains" } : {}),
    ...(filled.length > 0 ? { utm: Object.fromEntries(filled) } : {}),
  };
}

export const changeWebExperiment = (id: number, variants: readonly WebVariant[]): Promise<WebExperiment> =>
  request(webExperimentPath(id), { method: "PATCH", body: { variants: toSentVariants(variants) } });

/** @param variants with unique keys */
export const toSentVariants = (variants: readonly WebVariant[]): Record<string, SentVariant> =>
  Object.fromEntries(variants.map((variant) => [variant.key.trim(), toSent(variant)]));

function toSent({ isControl, rollout_percentage, transforms, conditions }: WebVariant): SentVariant {
  // Other clients may store changes of the control.
  if (isControl) return { rollout_percentage, ...(transforms.length > 0 ? { transforms, conditions } : {}) };
  return {
    rollout_percentage,
    transforms: transforms.map(({ css, unused: _, ...content }) => ({
      ...content,
      ...(isFilled(css) ? { css } : {}),
    })),
    conditions: toSentConditions(conditions),
  };
}

/** Without content, only the style of the elements changes. */
export function withContent(transform: EditedTransform, kind: ContentKind, value: string): EditedTransform {
  const { text: _, html: __, unused: ___, ...rest } = transform;
  return { ...rest, [kind === "none" ? "unused" : kind]: value };
}

/** The typed text, whether or not it is used. */
export const getContent = ({ text, html, unused }: EditedTransform): string => html ?? text ?? unused ?? "";

export const getContentKind = ({ text, html }: Transform): ContentKind =>
  html !== undefined ? "html" : text !== undefined ? "text" : "none";
