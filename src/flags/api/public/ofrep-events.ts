/**
 * `/ofrep/v1/events`: tells OpenFeature clients that a project's flags changed, so that they ask for all flags again.
 *
 * A server-sent event carries no values. Its id names the configuration; a client that comes back with an older one
 * is told at once. Source: OpenFeature Remote Evaluation Protocol, ADR 8 (SSE for bulk evaluation changes).
 */

import { EventStreams } from "../../../http/event-streams.ts";
import { HttpFailure } from "../../../http/failure.ts";
import { prefixIn } from "../../../http/path.ts";
import { type Call, clientRoutes, type Route } from "../../../http/route.ts";
import { object, text } from "../../../http/shapes.ts";
import type { JsonObject } from "../../../lib/json.ts";
import { ofrepDialect } from "./dialects.ts";
import { ofrepRefusals, openFeatureTag } from "./documentation.ts";
import type { EvaluatedProject } from "./ports.ts";

/** Open streams of all projects together; whoever finds no place polls. */
const streamsAtOnce = 2_000;
/** How often the configurations of projects with streams are looked at. */
const lookEveryMs = 250;
/** How long a page in the background keeps its stream. */
const inactivitySeconds = 120;
/** Messages that may wait for a client that does not read. */
const unreadMax = 100;
const ofrepPath = "/ofrep/v1/events";

interface Stream {
  readonly project: EvaluatedProject;
  /** The project key that it was opened with; the stream ends with it. */
  readonly key: string;
  /** The configuration the client has been told of. */
  told: string;
}

export interface FlagEventsDependencies {
  readonly projects: { findByToken(token: string): EvaluatedProject | undefined };
  /** A text that changes whenever the answers for the project may change. */
  readonly configurationOf: (projectId: number) => string;
  /** Address of this server when one is set; clients that are told a path use the address they know. */
  readonly publicUrl?: string;
  /** When it fires, all streams end: they would hold up the end of the server. */
  readonly stopping?: AbortSignal;
  /** Instead of the usual number, for tests. */
  readonly streamsMax?: number;
}

/** The open streams and who is to be told. */
export class FlagEvents {
  private readonly streams: EventStreams<Stream>;

  constructor(private readonly deps: FlagEventsDependencies) {
    this.streams = new EventStreams({
      ...{ streamsMax: deps.streamsMax ?? streamsAtOnce, unreadMax, tickMs: lookEveryMs },
      // It comes back, and its last id says what it missed.
      ...{ onSlow: "close", stopping: deps.stopping },
      full: { detail: "Too many streams are open; poll instead.", retryAfterSeconds: 60 },
      projectOf: ({ project }) => project.id,
      onTick: () => this.look(),
    });
  }

  /**
   * The `eventStreams` of an answer with all flags; undefined when no more streams of the project are taken.
   *
   * @param baseUrl where the client reaches this server.
   */
  connections(project: EvaluatedProject, baseUrl: string): JsonObject[] | undefined {
    if (!this.streams.hasRoomFor(project.id)) return undefined;
    const requestUri = `${ofrepPath}?key=${encodeURIComponent(project.apiToken)}`;
    const { publicUrl } = this.deps;
    const place: JsonObject =
      publicUrl === undefined
        ? { endpoint: { requestUri: prefixIn(baseUrl) + requestUri } }
        : { url: publicUrl.replace(/\/+$/, "") + requestUri };
    return [{ type: "sse", ...place, inactivityDelaySec: inactivitySeconds }];
  }

  routes(): Route[] {
    return [
      clientRoutes(ofrepDialect)("GET", ofrepPath, {
        summary: "Stream flag changes",
        description:
          'Server-sent events `{"type":"refetchEvaluation"}`; their ids name the configuration of the flags, and a `Last-Event-ID` that is not the present one is answered by an event at once. OpenFeature providers find the address in `eventStreams`.',
        tag: openFeatureTag,
        query: object({ key: text({ description: "The project's public key." }) }),
        answers: {
          200: { description: "`text/event-stream`, until the client leaves." },
          401: ofrepRefusals[401]!,
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
      const detail = "Send the project's key in `key`, as the answer with all flags tells it.";
      throw new HttpFailure(401, "authentication_error", "authentication_failed", detail);
    }
    const present = this.deps.configurationOf(project.id);
    const stream: Stream = { project, key, told: request.headers.get("last-event-id") || present };
    return this.streams.open(stream, request.signal, `id: ${stream.told}`, () => this.tell(stream, present));
  }

  private look(): void {
    const present = new Map<number, string>();
    for (const stream of this.streams) {
      const { id } = stream.project;
      if (this.deps.projects.findByToken(stream.key)?.id !== id) {
        // The key was replaced and its time is over, or the project is archived.
        this.streams.close(stream);
        continue;
      }
      const configuration = present.get(id) ?? this.deps.configurationOf(id);
      present.set(id, configuration);
      this.tell(stream, configuration);
    }
  }

  private tell(stream: Stream, configuration: string): void {
    if (stream.told === configuration) return;
    stream.told = configuration;
    const data = JSON.stringify({ type: "refetchEvaluation", etag: `"${configuration}"` });
    this.streams.send(stream, `id: ${configuration}\nevent: message\ndata: ${data}\n\n`);
  }
}
