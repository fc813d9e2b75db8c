/** What the documentation tells about the routes for OpenFeature clients. */

import type { DocumentedRoute } from "../../http/openapi.ts";
import { anyJson, dictionary, list, named, object, optional, text } from "../../http/shapes.ts";

const tagName = "OpenFeature";

const Context = object({
  context: dictionary({
    description:
      "`targetingKey` is the distinct id; `groups`, `group_properties`, `$device_id` and `$anon_distinct_id` mean what they mean in `/flags`; every other member is a person property.",
  }),
});
const Evaluated = named(
  "OpenFeatureEvaluation",
  object({
    key: text(),
    value: optional(anyJson({ description: "True, false, or the key of a variant." })),
    reason: optional(text({ description: "`STATIC`, `SPLIT`, `TARGETING_MATCH`, `DEFAULT`, `DISABLED`." })),
    variant: optional(text({ description: "The key of the variant, or `true` or `false`." })),
    metadata: optional(dictionary({ description: "`id`, `version`, `reason`, `payload` as JSON text." })),
    errorCode: optional(text()),
    errorDetails: optional(text()),
  }),
);
const exampleAnswer = {
  key: "button",
  value: "blue",
  reason: "SPLIT",
  variant: "blue",
  metadata: { id: 12, version: 3, reason: "condition_match", payload: '{"hex":"#00f"}' },
};
const keyDescription =
  "The project's public key comes as `Authorization: Bearer` or as `X-API-Key`. This is the OpenFeature Remote Evaluation Protocol; use it through an OFREP provider.";
const bodyExample = { context: { targetingKey: "kim", plan: "pro", groups: { company: "acme" } } };
const refusals = {
  400: {
    description: "`errorCode`: `PARSE_ERROR`, `TARGETING_KEY_MISSING`, `INVALID_CONTEXT` or `GENERAL`.",
  },
  401: { description: "No project key, or not a valid one." },
};

/** The routes of `ofrep-routes.ts`, for the `documented` option of `createApp`. */
export const ofrepDocumentation: readonly DocumentedRoute[] = [
  {
    method: "POST",
    path: "/ofrep/v1/evaluate/flags",
    summary: "Compute all flags for an OpenFeature context",
    description: `${keyDescription} With the answer's tag in \`If-None-Match\`, an unchanged answer is a 304.`,
    tag: tagName,
    body: Context,
    bodyExample,
    answers: {
      200: {
        description: "The flags, with an ETag.",
        schema: object({
          flags: list(Evaluated),
          eventStreams: optional(
            list(dictionary(), { description: "Where changes are told; absent: poll." }),
          ),
        }),
        example: {
          flags: [exampleAnswer],
          eventStreams: [
            { type: "sse", endpoint: { requestUri: "/ofrep/v1/events?key=phc_…" }, inactivityDelaySec: 120 },
          ],
        },
      },
      304: { description: "Unchanged since the given `If-None-Match`." },
      ...refusals,
    },
  },
  {
    method: "GET",
    path: "/ofrep/v1/events",
    summary: "Be told when flags change",
    description:
      'Server-sent events `{"type":"refetchEvaluation"}`; their ids name the configuration of the flags, and a `Last-Event-ID` that is not the present one is answered by an event at once. OFREP providers find the address in `eventStreams`.',
    tag: tagName,
    query: object({ key: text({ description: "The project's public key." }) }),
    answers: {
      200: { description: "`text/event-stream`, until the client leaves." },
      401: refusals[401],
      503: { description: "Too many streams are open: poll." },
    },
  },
  {
    method: "POST",
    path: "/ofrep/v1/evaluate/flags/:key",
    summary: "Compute one flag for an OpenFeature context",
    description: keyDescription,
    tag: tagName,
    body: Context,
    bodyExample,
    answers: {
      200: { description: "The flag.", schema: Evaluated, example: exampleAnswer },
      404: { description: "No such flag; `errorCode` is `FLAG_NOT_FOUND`." },
      ...refusals,
    },
  },
];
