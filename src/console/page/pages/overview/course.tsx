/** The chart of a figure, with the previous period and the flag changes below its axis. */

import { Chart } from "../../components/chart.tsx";
import { ChartMarks, useFlagMarks } from "../../components/chart-marks.tsx";
import { periodNames } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { messages } from "../../messages/index.ts";
import {
  type Course as CourseData,
  type FigureName,
  figureIn,
  readCourse,
  type View,
} from "../../model/overview.ts";
import { formatFigure } from "./figure-cards.tsx";
import { Panel } from "./panel.tsx";

const w = messages.overview;
const refreshMs = 60_000;

export function Course({
  view,
  figure,
  resourceKey,
}: {
  view: View;
  figure: FigureName;
  resourceKey: string;
}) {
  const marks = useFlagMarks();
  const course = useResource<CourseData>(
    `overview course ${resourceKey}`,
    (signal) => readCourse(view, signal),
    refreshMs,
  );
  return (
    <Panel resource={course} rows={6}>
      {(data) => <CourseChart course={data} figure={figure} marks={marks} />}
    </Panel>
  );
}

/** @param marks absent: without flag changes and notes, which name users */
export function CourseChart({
  course: { results, previous },
  figure,
  marks,
}: {
  course: CourseData;
  figure: FigureName;
  marks?: ReturnType<typeof useFlagMarks>;
}) {
  const buckets = results.map(({ bucket }) => bucket);
  const names = periodNames(buckets);
  const name = w.figures[figure];
  const scale = figure === "bounce" ? 100 : 1;
  const getValues = (buckets: CourseData["results"]) =>
    buckets.map((bucket) => scale * figureIn(bucket, figure));
  const earlier = previous && {
    name: w.before(name),
    // Ranges of other lengths, for example of months, are cut or end with zeros.
    values: names.map((_, position) => getValues(previous)[position] ?? 0),
    sameAs: 0,
    names: periodNames(previous.map(({ bucket }) => bucket)),
  };
  return (
    <section class="overview-course" aria-label={name}>
      <Chart
        label={name}
        summary={w.chartSummary(names[0]!, names.at(-1)!)}
        names={names}
        series={[{ name, values: getValues(results) }, ...(earlier ? [earlier] : [])]}
        isLastUnfinished
        format={(value) => formatFigure(figure, value / scale)}
        below={marks && <ChartMarks buckets={buckets} names={names} hasFlagChanges={marks.isShown} />}
        actions={marks ? [marks.item] : []}
      />
    </section>
  );
}
