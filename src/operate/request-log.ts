/** Request metrics per route, a log line per rejected event request, and on demand a line per request. */

import type { Metric, Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import type { CompletedRequest } from "../http/edge-deps.ts";
import { getPath } from "../http/error-mapping.ts";
import type { Log } from "../log.ts";

/** Seconds; flag requests take well under a millisecond, queries up to 30 s. */
const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];
/** Logged rejections per second; the next line reports how many were suppressed. */
const rejectionLinesPerSecond = 5;
const oneSecondMs = 1_000;
/** Number of rejected event requests to remember. */
const rejectionsMax = 20;
const pathLengthMax = 200;

/** A rejected event request, to diagnose missing events. */
export interface RejectedCapture {
  at: Date;
  method: string;
  path: string;
  status: number;
  reason: string | undefined;
  /** The client's address. */
  client: string;
}

/** Metrics of one route, aggregated here and converted on scrape, at a tenth of the cost per request. */
class RouteTotals {
  /**
   * Requests by duration: bucket i is above the previous bound and up to `durationBuckets[i]`; the last one is
   * unbounded.
   */
  readonly durations = new Float64Array(durationBuckets.length + 1);
  seconds = 0;
  readonly statuses = new Map<number, number>();

  see(seconds: number, status: number): void {
    let bucket = 0;
    while (bucket < durationBuckets.length && seconds > durationBuckets[bucket]!) bucket++;
    this.durations[bucket]! += 1;
    this.seconds += seconds;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }
}

/** Figures of a process since its last report. */
export interface RequestFigures {
  readonly routes: readonly {
    readonly route: string;
    readonly durations: readonly number[];
    readonly seconds: number;
    readonly statuses: readonly (readonly [number, number])[];
  }[];
  /** Newest first; times are ISO 8601 after a transfer as JSON. */
  readonly rejections: readonly RejectedCapture[];
}

export class RequestLog {
  private readonly routes = new Map<string, RouteTotals>();
  private secondStarted = 0;
  private linesThisSecond = 0;
  private untold = 0;
  private readonly rejections: RejectedCapture[] = [];

  /** @param registry of the metrics; undefined in a process that only reports figures to another one. */
  constructor(
    registry: Registry | undefined,
    private readonly log: Log,
    private readonly now: () => number = performance.now.bind(performance),
  ) {
    if (registry !== undefined) this.register(registry);
  }

  private register(registry: Registry): void {
    const { routes } = this;
    new Counter({
      name: "flagkeep_http_requests_total",
      help: "Requests answered; status 499: the client disconnected.",
      labelNames: ["route", "status"],
      registers: [registry],
      collect() {
        this.reset();
        for (const [route, { statuses }] of routes) {
          for (const [status, count] of statuses) this.inc({ route, status: String(status) }, count);
        }
      },
    });
    registry.registerMetric(new Durations(routes) as unknown as Metric);
  }

  /** Removes the figures since the last call, for the process that reports them. */
  take(): RequestFigures {
    const routes = [...this.routes].map(([route, { durations, seconds, statuses }]) => ({
      route,
      durations: [...durations],
      seconds,
      statuses: [...statuses],
    }));
    this.routes.clear();
    return { routes, rejections: this.rejections.splice(0) };
  }

  /** Adds the figures of another process. */
  add({ routes, rejections }: RequestFigures): void {
    for (const { route, durations, seconds, statuses } of routes) {
      const totals = this.getFigures(route);
      for (const [bucket, count] of durations.entries()) totals.durations[bucket]! += count;
      totals.seconds += seconds;
      for (const [status, count] of statuses)
        totals.statuses.set(status, (totals.statuses.get(status) ?? 0) + count);
    }
    if (rejections.length === 0) return;
    this.rejections.push(...rejections.map((rejection) => ({ ...rejection, at: new Date(rejection.at) })));
    this.rejections.sort((a, b) => b.at.getTime() - a.at.getTime());
    this.rejections.length = Math.min(this.rejections.length, rejectionsMax);
  }

  /** Counts a request, and logs it when required. */
  see(seen: CompletedRequest): void {
    const { route, status, startedAt } = seen;
    const seconds = (performance.now() - startedAt) / oneSecondMs;
    this.getFigures(route).see(seconds, status);
    if (seen.isCapture && status >= 400) {
      this.recordRejection(seen);
      this.reportRejection(seen);
    }
    if (this.log.isLevelEnabled("debug"))
      this.log.debug({ ...getFacts(seen), ms: seconds * oneSecondMs }, "request");
  }

  private getFigures(route: string): RouteTotals {
    let figures = this.routes.get(route);
    if (figures === undefined) {
      figures = new RouteTotals();
      this.routes.set(route, figures);
    }
    return figures;
  }

  /** The latest rejected event requests since the start, newest first. */
  recentRejections(): readonly RejectedCapture[] {
    return this.rejections;
  }

  private recordRejection({ request, status, reason, address }: CompletedRequest): void {
    const { method, url } = request;
    this.rejections.unshift({
      at: new Date(),
      method,
      path: getPath(url).slice(0, pathLengthMax),
      status,
      reason,
      client: address() ?? "",
    });
    this.rejections.length = Math.min(this.rejections.length, rejectionsMax);
  }

  private reportRejection(seen: CompletedRequest): void {
    const now = this.now();
    if (now - this.secondStarted >= oneSecondMs) [this.secondStarted, this.linesThisSecond] = [now, 0];
    if (this.linesThisSecond >= rejectionLinesPerSecond) {
      this.untold++;
      return;
    }
    this.linesThisSecond++;
    const more = this.untold === 0 ? {} : { not_told_before: this.untold };
    this.untold = 0;
    this.log.warn({ ...getFacts(seen), reason: seen.reason, ...more }, "event request rejected");
  }
}

/** A histogram in the form that the registry reads. */
class Durations {
  readonly name = "flagkeep_http_request_duration_seconds";
  readonly help = "Seconds from the end of the request head to the response.";
  readonly type = "histogram";
  readonly aggregator = "sum";

  constructor(private readonly routes: ReadonlyMap<string, RouteTotals>) {}

  async get() {
    const { name, help, type, aggregator } = this;
    const values = [...this.routes].flatMap(([route, { durations, seconds }]) => {
      let count = 0;
      const buckets = [...durations].map((more, bucket) => {
        count += more;
        const labels = { le: durationBuckets[bucket] ?? "+Inf", route };
        return { labels, value: count, metricName: `${name}_bucket` };
      });
      const labels = { route };
      const sum = { labels, value: seconds, metricName: `${name}_sum` };
      return [...buckets, sum, { labels, value: count, metricName: `${name}_count` }];
    });
    return { name, help, type, aggregator, values };
  }
}

/** Never a query or a body: they contain keys. */
function getFacts({ request, route, status, requestId, address }: CompletedRequest): Record<string, unknown> {
  return { method: request.method, path: getPath(request.url), route, status, requestId, client: address() };
}
