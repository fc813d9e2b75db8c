/**
 * OpenTelemetry traces: a span for each request, each engine call and each load of the journal.
 *
 * Loaded only with a collector configured. Spans contain neither paths nor bodies, which may contain keys.
 */

import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { AppliedBatch } from "../engine/pipeline/pipeline.ts";
import type { CompletedRequest } from "../http/edge-deps.ts";
import type { Log } from "../log.ts";
import { version } from "../version.ts";

export interface TraceOptions {
  /** URL of the collector, for example http://127.0.0.1:4318. */
  endpoint: string;
  /** Sampling rate in percent for requests without `traceparent`. */
  samplePercent: number;
}

/** Queued spans; further ones are dropped. */
const waitingSpansMax = 4_096;
const spansAtOnce = 512;
const sendEveryMs = 2_000;
const sendTimeoutMs = 5_000;
/** Log interval for an unreachable collector. */
const complaintEveryMs = 60_000;

export class Traces {
  private readonly provider: BasicTracerProvider;
  private readonly tracer: Tracer;

  constructor({ endpoint, samplePercent }: TraceOptions, log: Pick<Log, "warn">) {
    const exporter = new OTLPTraceExporter({
      url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
      timeoutMillis: sendTimeoutMs,
    });
    this.provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ "service.name": "flagkeep", "service.version": version }),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplePercent / 100) }),
      spanProcessors: [
        new BatchSpanProcessor(new ComplainingExporter(exporter, log), {
          maxQueueSize: waitingSpansMax,
          maxExportBatchSize: spansAtOnce,
          scheduledDelayMillis: sendEveryMs,
          exportTimeoutMillis: sendTimeoutMs,
        }),
      ],
    });
    this.tracer = this.provider.getTracer("flagkeep", version);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  }

  /** Wraps a request handler in a span, which continues the trace of `traceparent`. */
  around(handle: (request: Request) => Promise<Response>): (request: Request) => Promise<Response> {
    return (request) => {
      const parent = propagation.extract(context.active(), request.headers, {
        get: (headers, key) => headers.get(key) ?? undefined,
        keys: (headers) => [...headers.keys()],
      });
      const attributes = { "http.request.method": request.method };
      return this.within(request.method, { kind: SpanKind.SERVER, attributes }, parent, () =>
        handle(request),
      );
    };
  }

  /** Records the result of a request in its span, the active one. */
  seen({ request, route, status, requestId }: CompletedRequest): void {
    const span = trace.getActiveSpan();
    if (span === undefined) return;
    span.updateName(`${request.method} ${route}`);
    span.setAttributes({
      "http.route": route,
      "http.response.status_code": status,
      "flagkeep.request_id": requestId,
    });
    if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  }

  /** Wraps an engine call in a span. */
  async request<Answer>(name: string, ask: () => Promise<Answer>): Promise<Answer> {
    return await this.within(`engine ${name}`, { kind: SpanKind.CLIENT }, context.active(), ask);
  }

  /** Records a load of journal entries that just finished. */
  loaded({ lane, events, ms, lastSeq }: AppliedBatch): void {
    const endTime = Date.now();
    const attributes = { "flagkeep.lane": lane, "flagkeep.events": events, "flagkeep.last_seq": lastSeq };
    this.tracer
      .startSpan("load journal", { kind: SpanKind.CONSUMER, startTime: endTime - ms, attributes, root: true })
      .end(endTime);
  }

  /** Flushes queued spans, as far as the collector accepts them in time. */
  async stop(): Promise<void> {
    await this.provider.shutdown().catch(() => undefined);
  }

  private async within<Result>(
    name: string,
    options: { kind: SpanKind; attributes?: Record<string, string> },
    parent: Context,
    work: () => Promise<Result>,
  ): Promise<Result> {
    return await this.tracer.startActiveSpan(name, options, parent, async (span: Span) => {
      try {
        return await work();
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: (error as { code?: string }).code });
        throw error;
      } finally {
        span.end();
      }
    });
  }
}

/** Logs failed exports of spans in the background. */
class ComplainingExporter implements SpanExporter {
  private complainedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly exporter: SpanExporter,
    private readonly log: Pick<Log, "warn">,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      const now = performance.now();
      if (result.code === ExportResultCode.FAILED && now - this.complainedAt > complaintEveryMs) {
        this.complainedAt = now;
        this.log.warn(
          { error: String(result.error), spans: spans.length },
          "failed to send traces to the collector",
        );
      }
      done(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.exporter.shutdown();
  }

  async forceFlush(): Promise<void> {
    await this.exporter.forceFlush?.();
  }
}
