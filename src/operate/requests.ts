/** What an operator sees of requests: figures per route, a line per refused event request, a line per request on demand. */

import { Counter, Histogram, type Registry } from "prom-client";
import type { SeenRequest } from "../http/dispatch.ts";
import { pathOf } from "../http/errors.ts";
import type { Log } from "../log.ts";

/** Seconds; flag requests take well under a millisecond, queries up to half a minute. */
const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];
/** Lines about refused requests, per second; how many more there were is said in the next one. */
const refusalLinesPerSecond = 5;
const oneSecondMs = 1_000;

interface RouteFigures {
  readonly duration: Histogram.Internal<"route">;
  readonly counts: Map<number, Counter.Internal>;
}

export class Requests {
  private readonly counter: Counter;
  private readonly histogram: Histogram<"route">;
  private readonly routes = new Map<string, RouteFigures>();
  private secondBegan = 0;
  private linesThisSecond = 0;
  private untold = 0;

  constructor(
    registry: Registry,
    private readonly log: Log,
    private readonly now: () => number = performance.now.bind(performance),
  ) {
    const registers = [registry];
    this.counter = new Counter({
      name: "flagkeep_http_requests_total",
      help: "Answered requests.",
      labelNames: ["route", "status"],
      registers,
    });
    this.histogram = new Histogram({
      name: "flagkeep_http_request_duration_seconds",
      help: "From the end of a request's head to its answer.",
      labelNames: ["route"],
      buckets: durationBuckets,
      registers,
    });
  }

  /** Counts a request, and writes it down where that is due. */
  see(seen: SeenRequest): void {
    const { route, status, startedAt } = seen;
    const seconds = (performance.now() - startedAt) / oneSecondMs;
    const figures = this.figuresOf(route);
    figures.duration.observe(seconds);
    this.countOf(figures, route, status).inc();
    if (seen.isCapture && status >= 400) this.tellRefusal(seen);
    if (this.log.isLevelEnabled("debug"))
      this.log.debug({ ...factsOf(seen), ms: seconds * oneSecondMs }, "request");
  }

  private figuresOf(route: string): RouteFigures {
    let figures = this.routes.get(route);
    if (figures === undefined) {
      figures = { duration: this.histogram.labels(route), counts: new Map() };
      this.routes.set(route, figures);
    }
    return figures;
  }

  private countOf({ counts }: RouteFigures, route: string, status: number): Counter.Internal {
    let count = counts.get(status);
    if (count === undefined) {
      count = this.counter.labels(route, String(status));
      counts.set(status, count);
    }
    return count;
  }

  private tellRefusal(seen: SeenRequest): void {
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

/** Never a query or a body: keys stand there. */
function factsOf({ request, route, status, requestId, address }: SeenRequest): Record<string, unknown> {
  return { method: request.method, path: pathOf(request.url), route, status, requestId, client: address() };
}
