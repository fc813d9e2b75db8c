/** Detects files of other flag products by their content, and converts them to documents. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";
import { documentVersion, type FlagDocument } from "../document.ts";
import { InvalidDocumentError } from "../read-document.ts";
import { FlagItems, type NotMapped } from "./flag-items.ts";
import { isFlagd, readFlagd } from "./flagd.ts";
import { isFlagsmith, readFlagsmith } from "./flagsmith.ts";
import { isFlipt, readFlipt } from "./flipt.ts";
import { isGoFeatureFlag, readGoFeatureFlag } from "./go-feature-flag.ts";
import { isGrowthBook, readGrowthBook } from "./growthbook.ts";
import { isLaunchDarkly, readLaunchDarkly } from "./launchdarkly.ts";
import { isPostHog, readPostHog } from "./posthog.ts";
import { isUnleash, readUnleash } from "./unleash.ts";
import { AmbiguousEnvironmentError } from "./values.ts";

/** The result of reading a file of another product. */
export interface VendorImport {
  product: string;
  /** The environment it was read from, if the file has several. */
  environment: string | undefined;
  document: FlagDocument;
  notMapped: NotMapped[];
  /** Keys of the flags that were not converted completely. */
  switchedOff: ReadonlySet<string>;
  /** Number of flags that could not be read. */
  unread: number;
  /** Messages about other parts of the file that are not in the document. */
  remarks: string[];
  /** Whether every user stays in the same bucket. */
  preservesPercentages: boolean;
}

interface Product {
  name: string;
  recognizes(root: JsonObject): boolean;
  /** Returns the chosen environment, if any. */
  read(root: JsonObject, items: FlagItems, environment: string | undefined): unknown;
}

const products: readonly Product[] = [
  { name: "LaunchDarkly", recognizes: isLaunchDarkly, read: readLaunchDarkly },
  { name: "Unleash", recognizes: isUnleash, read: readUnleash },
  { name: "Flagsmith", recognizes: isFlagsmith, read: readFlagsmith },
  { name: "GrowthBook", recognizes: isGrowthBook, read: readGrowthBook },
  { name: "flagd", recognizes: isFlagd, read: readFlagd },
  { name: "Flipt", recognizes: isFlipt, read: readFlipt },
  { name: "GO Feature Flag", recognizes: isGoFeatureFlag, read: readGoFeatureFlag },
];

/** Its files need no conversion. */
const posthog = "PostHog";

/** The supported products. */
export const vendorProducts: readonly string[] = [posthog, ...products.map(({ name }) => name)];

/**
 * Reads the flags of another product.
 *
 * @param root        the parsed file.
 * @param environment environment to use if the file has several.
 * @returns           undefined when the file is from none of the supported products.
 * @throws {InvalidDocumentError} several environments, and the named one is missing or not among them.
 */
export function readVendorFile(root: Json, environment?: string): VendorImport | undefined {
  if (isPostHog(root))
    return {
      product: posthog,
      environment: undefined,
      switchedOff: new Set(),
      preservesPercentages: true,
      ...readPostHog(root),
    };
  const product = products.find(({ name, recognizes }) =>
    isJsonObject(root) ? recognizes(root) : name === "Flagsmith" && isFlagsmith(root),
  );
  if (product === undefined) return undefined;
  const items = new FlagItems();
  try {
    const chosen = product.read(root as JsonObject, items, environment);
    const { items: flags, notMapped, switchedOff, unread } = items.convert();
    return {
      product: product.name,
      environment: typeof chosen === "string" ? chosen : undefined,
      document: { flagkeep_flags: documentVersion, group_types: {}, cohorts: [], flags },
      notMapped,
      switchedOff,
      unread,
      remarks: [],
      preservesPercentages: false,
    };
  } catch (error) {
    if (!(error instanceof AmbiguousEnvironmentError)) throw error;
    throw new InvalidDocumentError(
      `The file has the environments ${error.environments.join(", ")}. Choose one with --environment.`,
    );
  }
}
