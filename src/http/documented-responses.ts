/** Responses that several routes document in the same words. */

import { retryableCodes } from "./error-mapping.ts";
import type { ResponseSpec } from "./route.ts";
import { ApiFailure } from "./schemas.ts";

/** For routes that use the engine: it may be restarting, or the query may time out. */
export const unavailable: Record<503, ResponseSpec> = {
  503: {
    description: `Temporarily unavailable: ${Object.entries(retryableCodes)
      .map(([code, reason]) => `\`${code}\` (${reason})`)
      .join(", ")}. Repeat the request after the seconds in \`Retry-After\`.`,
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "engine_unavailable",
      detail: "Queries are unavailable while the event store is being reopened.",
      attr: null,
    },
  },
};
