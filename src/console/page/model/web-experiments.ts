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
  rollout_percentage: number;
  transforms: Transform[];
  conditions: WebConditions;
}

export interface WebExperiment {
  id: number;
  name: string;
  feature_flag_key: string;
  variants: Record<string, SentVariant>;
}

/** Shows the pages as they are; the API requires it. */
export const controlKey = "control";

export const webExperimentPath = (id: number) => inProject(`web_experiments/${id}/`);

export const freshTransform = (): Transform => ({ selector: "", text: "" });

/** Variants in order; each but the control has at least one change to fill in. */
export const readWebVariants = ({ variants }: WebExperiment): WebVariant[] =>
  Object.entries(variants).map(([key, { rollout_percentage, transforms = [], conditions = {} }]) => ({
    key,
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
  request(webExperimentPath(id), {
    method: "PATCH",
    body: { variants: Object.fromEntries(variants.map((one) => [one.key.trim(), toSent(one)])) },
  });

function toSent({ key, rollout_percentage, transforms, conditions }: WebVariant): SentVariant {
  if (key === controlKey) return { rollout_percentage };
  return {
    rollout_percentage,
    transforms: transforms.map(({ css, ...content }) => ({ ...content, ...(isFilled(css) ? { css } : {}) })),
    conditions: toSentConditions(conditions),
  };
}

/** Without content, only the style of the elements changes. */
export function withContent(transform: Transform, kind: ContentKind, value: string): Transform {
  const { text: _, html: __, ...rest } = transform;
  return kind === "none" ? rest : { ...rest, [kind]: value };
}

export const getContentKind = ({ text, html }: Transform): ContentKind =>
  html !== undefined ? "html" : text !== undefined ? "text" : "none";
