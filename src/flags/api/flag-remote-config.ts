/** The payload of a remote-configuration flag (contract: management-api 5.6; sdk-compat 4.5). */

import { projectOrSecretRoute } from "../../accounts/api/routes.ts";
import { HttpError } from "../../http/http-error.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import { isNotModified, weakTag } from "../../http/route-response.ts";
import { ApiFailure, nullable, object, optional, string } from "../../http/schemas.ts";
import { isJsonObject } from "../../lib/json/value.ts";
import type { Flag } from "../fields.ts";
import { unreadablePayloads } from "../rules/types.ts";
import { findFlag, findFlagByKey } from "../store/flag.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";

export function flagRemoteConfigRoutes(deps: FlagWriteDeps): Route[] {
  return [
    projectOrSecretRoute("GET", "/feature_flags/:id/remote_config", "feature_flag:read", {
      summary: "Get the payload of a remote configuration flag",
      description:
        "By id or key. The body is a JSON string that contains JSON. Secret payloads are decrypted. The project's secret key is accepted.",
      tag: "Flag evaluation",
      bucket: "remote_config",
      query: object({ token: optional(string({ description: "Public key of the project." })) }),
      answers: {
        200: {
          description: "The payload, or null, with an ETag.",
          schema: nullable(string()),
          example: '{"color":"red"}',
        },
        304: { description: "Not modified since the given `If-None-Match`." },
        409: { description: "The payload cannot be decrypted (`payload_unreadable`).", schema: ApiFailure },
        404: { description: "The flag does not exist or is not a remote configuration. No body." },
      },
      handle: (call) => {
        const flag = namedFlag(deps, call.project.id, call.params.id ?? "");
        if (!flag?.isRemoteConfiguration || flag.deleted) return new RouteResponse(404);
        const opened = deps.payloads.open(flag);
        if (unreadablePayloads(flag, opened).includes("true")) throw payloadUnreadable(flag.key);
        const { payloads } = opened;
        const payload = (isJsonObject(payloads) ? payloads.true : undefined) ?? null;
        const headers = {
          ETag: weakTag(JSON.stringify(payload)),
          "Cache-Control": "private, must-revalidate",
        };
        if (isNotModified(call.request.headers.get("if-none-match"), headers.ETag))
          return new RouteResponse(304, undefined, headers);
        return new RouteResponse(200, payload, headers);
      },
    }),
  ];
}

/** The payload was encrypted with another key, or is corrupt: the rest of the flag is served. */
function payloadUnreadable(key: string): HttpError {
  const detail =
    `The payload of "${key}" cannot be decrypted: it is corrupt or was encrypted for another flag or with another payload.key. ` +
    "Set the payload again, or restore a backup.";
  return new HttpError(409, "server_error", "payload_unreadable", detail);
}

/** Keys may look like numbers: a number is the ID if such a flag exists, else the key. */
function namedFlag({ metadata }: FlagWriteDeps, projectId: number, name: string): Flag | undefined {
  const byId = /^\d{1,15}$/.test(name) ? findFlag(metadata.db, projectId, Number(name)) : undefined;
  return byId ?? findFlagByKey(metadata.db, projectId, name);
}
