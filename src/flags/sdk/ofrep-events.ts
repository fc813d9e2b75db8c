/**
 * `/ofrep/v1/events`: notifies OpenFeature clients of changed flags, so that they request all flags again.
 *
 * A server-sent event carries no values. Its ID identifies the configuration; a client that reconnects with an older
 * one is notified immediately. Source: OpenFeature Remote Evaluation Protocol, ADR 8 (SSE for bulk evaluation changes).
 */

import { HttpError } from "../../http/http-error.ts";
import { prefixIn } from "../../http/params.ts";
import { type Call, clientRoutes, type Route } from "../../http/route.ts";
import { object, string } from "../../http/schemas.ts";
import { SseBroadcaster } from "../../http/sse.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { ofrepRejections, openFeatureTag } from "./documentation.ts";
import type { EvaluatedProject } from "./ports.ts";
import { ofrepProfile } from "./route-profiles.ts";

/** Maximum open streams of all projects; further clients poll. */
const streamsAtOnce = 2_000;
/** Polling interval for the configurations of projects with streams. */
const checkIntervalMs = 250;
/** How long a page in the background keeps its stream. */
const inactivitySeconds = 120;
/** Messages that may be queued for a client that does not read. */
const unreadMax = 100;
const ofrepPath = "/ofrep/v1/events";

interface Stream {
  readonly project: EvaluatedProject;
  /** The project key that opened it; the stream ends when the key does. */
  readonly key: string;
  /** The last configuration sent to the client. */
  sentConfiguration: string;
}

export interface FlagEventsDeps {
  readonly projects: { findByToken(token: string): EvaluatedProject | undefined };
  /** A string that changes whenever the results for the project may change. */
  readonly configurationOf: (projectId: number) => string;
  /** URL of this server, if configured; otherwise clients resolve a path against the URL they use. */
  readonly publicUrl?: string;
  /** Aborts all streams, which would delay the shutdown. */
  readonly stopping?: AbortSignal;
  /** Overrides the default limit in tests. */
  readonly streamsMax?: number;
}

/** The open streams and their clients. */
export class FlagEvents {
  private readonly streams: SseBroadcaster<Stream>;

  constructor(private readonly deps: FlagEventsDeps) {
    this.streams = new SseBroadcaster({
      streamsMax: deps.streamsMax ?? streamsAtOnce,
      unreadMax,
      tickMs: checkIntervalMs,
      // It reconnects, and its last ID shows what it missed.
      onSlow: "close",
      stopping: deps.stopping,
      full: { detail: "Too many streams are open; poll instead.", retryAfterSeconds: 60 },
      projectOf: ({ project }) => project.id,
      onTick: () => this.check(),
    });
  }

  /**
   * The `eventStreams` of a response with all flags; undefined when the project has no more streams available.
   *
   * @param baseUrl URL by which the client reaches this server.
   */
  connections(project: EvaluatedProject, baseUrl: string): JsonObject[] | undefined {
    if (!this.streams.hasCapacityFor(project.id)) return undefined;
    const requestUri = `${ofrepPath}?key=${encodeURIComponent(project.apiToken)}`;
    const { publicUrl } = this.deps;
    const endpoint: JsonObject =
      publicUrl === undefined
        ? { endpoint: { requestUri: prefixIn(baseUrl) + requestUri } }
        : { url: publicUrl.replace(/\/+$/, "") + requestUri };
    return [{ type: "sse", ...endpoint, inactivityDelaySec: inactivitySeconds }];
  }

  routes(): Route[] {
    return [
      clientRoutes(ofrepProfile)("GET", ofrepPath, {
        summary: "Stream flag changes",
        description:
          'Server-sent events `{"type":"refetchEvaluation"}`; their ids are versions of the flag configuration; an outdated `Last-Event-ID` immediately gets an event. OpenFeature providers find the URL in `eventStreams`.',
        tag: openFeatureTag,
        query: object({ key: string({ description: "The project's public key." }) }),
        answers: {
          200: { description: "`text/event-stream`, until the client disconnects." },
          401: ofrepRejections[401]!,
          503: { description: "Too many streams are open: poll." },
        },
        handle: (call) => this.answer(call),
      }),
    ];
  }

  private answer({ request, query }: Call): Response {
    const key = query.get("key") ?? "";
    const project = this.deps.projects.findByToken(key);
    if (project === undefined) {
      const detail = "Send the project's key in `key`, as in the response with all flags.";
      throw new HttpError(401, "authentication_error", "authentication_failed", detail);
    }
    const present = this.deps.configurationOf(project.id);
    const stream: Stream = {
      project,
      key,
      sentConfiguration: request.headers.get("last-event-id") || present,
    };
    return this.streams.open(stream, request.signal, `id: ${stream.sentConfiguration}`, () =>
      this.send(stream, present),
    );
  }

  private check(): void {
    const present = new Map<number, string>();
    for (const stream of this.streams) {
      const { id } = stream.project;
      if (this.deps.projects.findByToken(stream.key)?.id !== id) {
        // The key was replaced and has expired, or the project is archived.
        this.streams.close(stream);
        continue;
      }
      const configuration = present.get(id) ?? this.deps.configurationOf(id);
      present.set(id, configuration);
      this.send(stream, configuration);
    }
  }

  private send(stream: Stream, configuration: string): void {
    if (stream.sentConfiguration === configuration) return;
    stream.sentConfiguration = configuration;
    const data = JSON.stringify({ type: "refetchEvaluation", etag: `"${configuration}"` });
    this.streams.send(stream, `id: ${configuration}\nevent: message\ndata: ${data}\n\n`);
  }
}
