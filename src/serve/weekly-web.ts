/** Web analytics in weekly summaries. */

import type { EngineClient } from "../engine/client.ts";
import { webSettings } from "../events/web/web-query.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Log } from "../log.ts";
import type { ReadWeeklyWeb } from "../operate/webhooks/sources.ts";

/** Reads visitors and page views. A summary is sent without them rather than late: the engine may be restarting for long. */
export function weeklyWebReader({
  engine,
  log,
}: {
  engine: Pick<EngineClient, "ask">;
  log: Pick<Log, "warn">;
}): ReadWeeklyWeb {
  return async (project, { from, to }) => {
    try {
      const { results } = await engine.ask("trends", {
        projectId: project.id,
        query: {
          kind: "WebOverviewQuery",
          dateRange: { date_from: from, date_to: to },
          compareFilter: { compare: true },
        },
        timezone: project.timezone,
        weekStartDay: project.weekStartDay,
        web: webSettings(project),
        now: Date.now(),
        refresh: "blocking",
      });
      // Members of the response, of which `results` is one.
      const { results: list } = results as unknown as { results: JsonObject[] };
      const figures = new Map(list.map((figure) => [figure.key, figure]));
      const figure = (key: string) => {
        const { value, previous } = figures.get(key) ?? {};
        return { current: Number(value ?? 0), previous: Number(previous ?? 0) };
      };
      const pageViews = figure("views");
      if (pageViews.current === 0 && pageViews.previous === 0) return undefined;
      return { visitors: figure("visitors"), pageViews };
    } catch (error) {
      log.warn({ project: project.id, error: String(error) }, "failed to read web analytics of a summary");
      return undefined;
    }
  };
}
