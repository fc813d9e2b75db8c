/**
 * Configuration of client libraries, which they load before they start.
 *
 * Every unsupported feature is `false`, so that no library requests it. `hasFeatureFlags` is always true: with false,
 * mobile libraries drop their flags. Source: contract, sdk-compat 4.6, flag-evaluation 15.
 */

import type { JsonObject } from "../../lib/json/value.ts";

/** The configuration of one project's clients. */
export function clientConfig(token: string, hasSurveys: boolean): JsonObject {
  return {
    token,
    hasFeatureFlags: true,
    supportedCompression: ["gzip", "gzip-js"],
    analytics: { endpoint: "/i/v0/e/" },
    elementsChainAsString: true,
    // Without it, libraries record no clicks for new visitors.
    autocapture_opt_out: false,
    defaultIdentifiedOnly: true,
    sessionRecording: false,
    surveys: hasSurveys,
    productTours: false,
    heatmaps: false,
    captureDeadClicks: false,
    capturePerformance: false,
    autocaptureExceptions: false,
    errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
    logs: { captureConsoleLogs: false },
    conversations: false,
    isAuthenticated: false,
    toolbarParams: {},
    siteApps: [],
    config: { enable_collect_everything: true },
  };
}

/** The configuration as members of an object, `"token":"phc_…",…`, cached per key and value of `surveys`. */
export class ClientConfigStrings {
  private readonly byToken = new Map<string, string>();

  members(token: string, hasSurveys: boolean): string {
    const key = `${hasSurveys} ${token}`;
    let text = this.byToken.get(key);
    if (text === undefined) {
      text = JSON.stringify(clientConfig(token, hasSurveys)).slice(1, -1);
      // Only keys of projects get here, so the cache stays small.
      this.byToken.set(key, text);
    }
    return text;
  }
}
