/** The payload of a remote-configuration flag (contract: management-api 5.6; sdk-compat 4.5). */

import { projectOrSecretRoute } from "../../accounts/api/routes.ts";
import { isNotModified, weakTag } from "../../http/etag.ts";
import { HttpFailure } from "../../http/failure.ts";
import { Reply, type Route } from "../../http/route.ts";
import { ApiFailure, nullable, object, optional, text } from "../../http/shapes.ts";
import { isJsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import { redactedPayload } from "../rules/types.ts";
import { findFlag, findFlagByKey } from "../store/flag.ts";
import type { FlagWriting } from "../store/flag-writes.ts";

export function flagRemoteConfigRoutes(deps: FlagWriting): Route[] {
  return [
    projectOrSecretRoute("GET", "/feature_flags/:id/remote_config", "feature_flag:read", {
      summary: "Get the payload of a remote configuration flag",
      description:
        "By id or key. The body is a JSON string that holds JSON. Secret payloads come in clear. The project's secret key is accepted.",
      tag: "Flag evaluation",
      bucket: "remote_config",
      query: object({ token: optional(text({ description: "Public key of the project that is meant." })) }),
      answers: {
        200: {
          description: "The payload, or null, with an ETag.",
          schema: nullable(text()),
          example: '{"color":"red"}',
        },
        304: { description: "Unchanged since the given `If-None-Match`." },
        409: { description: "The payload cannot be decrypted (`payload_unreadable`).", schema: ApiFailure },
        404: { description: "No such flag, or not one for remote configuration. No body." },
      },
      handle: (call) => {
        const flag = namedFlag(deps, call.project.id, call.params.id ?? "");
        if (!flag?.isRemoteConfiguration || flag.deleted) return new Reply(404);
        const { payloads } = deps.payloads.open(flag);
        const payload = (isJsonObject(payloads) ? payloads.true : undefined) ?? null;
        if (flag.hasEncryptedPayloads && payload === redactedPayload) throw payloadUnreadable(flag.key);
        const headers = {
          ETag: weakTag(JSON.stringify(payload)),
          "Cache-Control": "private, must-revalidate",
        };
        if (isNotModified(call.request.headers.get("if-none-match"), headers.ETag))
          return new Reply(304, undefined, headers);
        return new Reply(200, payload, headers);
      },
    }),
  ];
}

/** It was encrypted with another key, or its bytes are damaged: the rest of the flag is served. */
function payloadUnreadable(key: string): HttpFailure {
  const detail =
    `The payload of "${key}" cannot be decrypted: it is damaged or was encrypted with another payload.key. ` +
    "Set the payload again, or restore a backup.";
  return new HttpFailure(409, "server_error", "payload_unreadable", detail);
}

/** Keys may look like numbers; the id is meant then, unless there is none such. */
function namedFlag({ metadata }: FlagWriting, projectId: number, name: string): Flag | undefined {
  const byId = /^\d{1,15}$/.test(name) ? findFlag(metadata.db, projectId, Number(name)) : undefined;
  return byId ?? findFlagByKey(metadata.db, projectId, name);
}
