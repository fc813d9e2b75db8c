/** What an operator sees of requests: figures per route, a line per refused event request, a line per request on demand. */

import type { Metric, Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import type { CompletedRequest } from "../http/edge-deps.ts";
import { pathOf } from "../http/errors.ts";
import type { Log } from "../log.ts";

/** Seconds; flag requests take well under a millisecond, queries up to half a minute. */
const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];
/** Lines about refused requests, per second; how many more there were is said in the next one. */
const refusalLinesPerSecond = 5;
const oneSecondMs = 1_000;
/** Refused event requests that are remembered. */
const refusalsMax = 20;
const pathLengthMax = 200;

/** An event request that was refused, for whoever wonders why nothing arrives. */
export interface Refusal {
  at: Date;
  method: string;
  path: string;
  status: number;
  reason: string | undefined;
  /** The caller's address. */
  client: string;
}

/** Of one route. Added up here, and made into metrics when somebody reads them: that costs a tenth at each request. */
class RouteFigures {
  /** Requests by duration: up to each of `durationBuckets` and above the one before it; the last are longer than all. */
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

export class Requests {
  private readonly routes = new Map<string, RouteFigures>();
  private secondBegan = 0;
  private linesThisSecond = 0;
  private untold = 0;
  private readonly refusals: Refusal[] = [];

  constructor(
    registry: Registry,
    private readonly log: Log,
    private readonly now: () => number = performance.now.bind(performance),
  ) {
    const { routes } = this;
    new Counter({
      name: "flagkeep_http_requests_total",
      help: "Answered requests; with status 499, whoever asked had gone before.",
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

  /** Counts a request, and writes it down where that is due. */
  see(seen: CompletedRequest): void {
    const { route, status, startedAt } = seen;
    const seconds = (performance.now() - startedAt) / oneSecondMs;
    this.figuresOf(route).see(seconds, status);
    if (seen.isCapture && status >= 400) {
      this.rememberRefusal(seen);
      this.tellRefusal(seen);
    }
    if (this.log.isLevelEnabled("debug"))
      this.log.debug({ ...factsOf(seen), ms: seconds * oneSecondMs }, "request");
  }

  private figuresOf(route: string): RouteFigures {
    let figures = this.routes.get(route);
    if (figures === undefined) {
      figures = new RouteFigures();
      this.routes.set(route, figures);
    }
    return figures;
  }

  /** The latest refused event requests since the start, the newest first. */
  recentRefusals(): readonly Refusal[] {
    return this.refusals;
  }

  private rememberRefusal({ request, status, reason, address }: CompletedRequest): void {
    const { method, url } = request;
    this.refusals.unshift({
      ...{ at: new Date(), method, path: pathOf(url).slice(0, pathLengthMax), status, reason },
      client: address() ?? "",
    });
    this.refusals.length = Math.min(this.refusals.length, refusalsMax);
  }

  private tellRefusal(seen: CompletedRequest): void {
    const now = this.now();
    if (now - this.secondBegan >= oneSecondMs) [this.secondBegan, this.linesThisSecond] = [now, 0];
    if (this.linesThisSecond >= refusalLinesPerSecond) {
      this.untold++;
      return;
    }
    this.linesThisSecond++;
    const more = this.untold === 0 ? {} : { not_told_before: this.untold };
    this.untold = 0;
    this.log.warn({ ...factsOf(seen), reason: seen.reason, ...more }, "an event request was refused");
  }
}

/** A histogram, as the registry reads one. */
class Durations {
  readonly name = "flagkeep_http_request_duration_seconds";
  readonly help = "From the end of a request's head to its answer.";
  readonly type = "histogram";
  readonly aggregator = "sum";

  constructor(private readonly routes: ReadonlyMap<string, RouteFigures>) {}

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

/** Never a query or a body: keys stand there. */
function factsOf({ request, route, status, requestId, address }: CompletedRequest): Record<string, unknown> {
  return { method: request.method, path: pathOf(request.url), route, status, requestId, client: address() };
}
