/**
 * What client libraries are told about this server before they start.
 *
 * Everything that is not offered here is `false`, so that no library asks for it. `hasFeatureFlags` is always true:
 * with false, mobile libraries forget their flags. Source: contract, sdk-compat 4.6, flag-evaluation 15.
 */

import type { JsonObject } from "../../../lib/json.ts";

/** The configuration of one project's clients. */
export function clientConfig(token: string): JsonObject {
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
    surveys: false,
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

/** The configuration as members of an object, `"token":"phc_…",…`, made once per key. */
export class ClientConfigTexts {
  private readonly byToken = new Map<string, string>();

  members(token: string): string {
    let text = this.byToken.get(token);
    if (text === undefined) {
      text = JSON.stringify(clientConfig(token)).slice(1, -1);
      // Only keys of projects come here, so there are few.
      this.byToken.set(token, text);
    }
    return text;
  }
}
