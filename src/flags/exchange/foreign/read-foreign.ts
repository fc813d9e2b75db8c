/** Recognises files of other flag products by what is in them, and makes documents of them. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";
import { documentVersion, type ExchangeDocument } from "../document.ts";
import { DocumentUnusable } from "../read-document.ts";
import { isFlagd, readFlagd } from "./flagd.ts";
import { isFlagsmith, readFlagsmith } from "./flagsmith.ts";
import { isFlipt, readFlipt } from "./flipt.ts";
import { FlagItems, type NotMapped } from "./foreign-flag.ts";
import { isGoFeatureFlag, readGoFeatureFlag } from "./go-feature-flag.ts";
import { isGrowthBook, readGrowthBook } from "./growthbook.ts";
import { isLaunchDarkly, readLaunchDarkly } from "./launchdarkly.ts";
import { isPostHog, readPostHog } from "./posthog.ts";
import { isUnleash, readUnleash } from "./unleash.ts";
import { WhichEnvironment } from "./values.ts";

/** What came out of a file of another product. */
export interface ForeignReading {
  product: string;
  /** The environment it was taken from, where the file has several. */
  environment: string | undefined;
  document: ExchangeDocument;
  notMapped: NotMapped[];
  /** Keys of the flags of which something was lost. */
  switchedOff: ReadonlySet<string>;
  /** Sentences about what else of the file is not in the document. */
  remarks: string[];
  /** Whether everybody stays in their share. */
  keepsShares: boolean;
}

interface Product {
  name: string;
  recognises(root: JsonObject): boolean;
  /** Answers the environment it has chosen, if any. */
  read(root: JsonObject, items: FlagItems, environment: string | undefined): unknown;
}

const products: readonly Product[] = [
  { name: "LaunchDarkly", recognises: isLaunchDarkly, read: readLaunchDarkly },
  { name: "Unleash", recognises: isUnleash, read: readUnleash },
  { name: "Flagsmith", recognises: isFlagsmith, read: readFlagsmith },
  { name: "GrowthBook", recognises: isGrowthBook, read: readGrowthBook },
  { name: "flagd", recognises: isFlagd, read: readFlagd },
  { name: "Flipt", recognises: isFlipt, read: readFlipt },
  { name: "GO Feature Flag", recognises: isGoFeatureFlag, read: readGoFeatureFlag },
];

/** Its files need no translation. */
const posthog = "PostHog";

/** The products whose files are read. */
export const foreignProducts: readonly string[] = [posthog, ...products.map(({ name }) => name)];

/**
 * Reads the flags of another product.
 *
 * @param root        the file, parsed.
 * @param environment which one to take, where the file has several.
 * @returns           undefined when the file is of none of the known products.
 * @throws {DocumentUnusable} several environments, and none was named that is among them.
 */
export function readForeign(root: Json, environment?: string): ForeignReading | undefined {
  if (isPostHog(root))
    return {
      ...{
        product: posthog,
        environment: undefined,
        notMapped: [],
        switchedOff: new Set(),
        keepsShares: true,
      },
      ...readPostHog(root),
    };
  const product = products.find(({ name, recognises }) =>
    isJsonObject(root) ? recognises(root) : name === "Flagsmith" && isFlagsmith(root),
  );
  if (product === undefined) return undefined;
  const items = new FlagItems();
  try {
    const chosen = product.read(root as JsonObject, items, environment);
    return {
      product: product.name,
      environment: typeof chosen === "string" ? chosen : undefined,
      document: { flagkeep_flags: documentVersion, group_types: {}, cohorts: [], flags: items.items },
      notMapped: items.notMapped,
      switchedOff: items.switchedOff,
      remarks: [],
      keepsShares: false,
    };
  } catch (error) {
    if (!(error instanceof WhichEnvironment)) throw error;
    throw new DocumentUnusable(
      `The file has the environments ${error.environments.join(", ")}; name one of them with --environment.`,
    );
  }
}
