/** What a share link of Overview shows: figures, chart and lists, without users and filters. */

import { useState } from "preact/hooks";
import { Tabs } from "../../components/primitives.tsx";
import { messages } from "../../messages/index.ts";
import {
  type Course,
  type FigureName,
  getFigures,
  type ListAnswer,
  type ListName,
  listOf,
  lists,
  type OverviewAnswer,
  panels,
} from "../../model/overview.ts";
import { CourseChart } from "./course.tsx";
import { FigureCards } from "./figure-cards.tsx";
import { ListTable } from "./list-panel.tsx";

const w = messages.overview;

/** Result of a query of Overview; `name` is the `breakdownBy` of a list. */
export interface OverviewPart {
  name: string;
  kind: string;
  result: unknown;
}

export function SharedOverview({ parts }: { parts: readonly OverviewPart[] }) {
  const [figure, setFigure] = useState<FigureName>("visitors");
  const getResult = (kind: string, name = "") =>
    parts.find((part) => part.kind === kind && part.name === name)?.result ?? undefined;
  const overview = getResult("WebOverviewQuery") as OverviewAnswer | undefined;
  const course = getResult("WebTrendsQuery") as Course | undefined;
  const getAnswer = (name: ListName) =>
    getResult("WebStatsTableQuery", lists[name].breakdownBy) as ListAnswer | undefined;
  return (
    <>
      {overview === undefined ? (
        <p class="muted">{messages.share.noResult}</p>
      ) : (
        <FigureCards
          figures={getFigures(overview)}
          isCompared={overview.results.some(({ previous }) => previous !== null)}
          current={figure}
          onChoose={setFigure}
        />
      )}
      {course && <CourseChart course={course} figure={figure} />}
      <div class="overview-panels">
        {panels.map(([name, tabs]) => (
          <SharedPanel key={name} label={w.panels[name]} tabs={tabs} answerOf={getAnswer} />
        ))}
      </div>
    </>
  );
}

function SharedPanel({
  label,
  tabs,
  answerOf: getAnswer,
}: {
  label: string;
  tabs: readonly ListName[];
  answerOf: (name: ListName) => ListAnswer | undefined;
}) {
  const [current, setCurrent] = useState(tabs[0]!);
  const answer = getAnswer(current);
  return (
    <section class="overview-panel" aria-label={label}>
      <Tabs
        label={label}
        tabs={tabs.map((name) => [name, w.lists[name]] as const)}
        current={current}
        onChoose={setCurrent}
      />
      {answer === undefined ? (
        <p class="muted">{messages.share.noResult}</p>
      ) : (
        <ListTable name={current} list={listOf(current, answer)} />
      )}
    </section>
  );
}
