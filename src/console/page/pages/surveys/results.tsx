/** Results of a survey: counts, rates, and the answers to each question. */

import { Chart } from "../../components/chart.tsx";
import { NameBars } from "../../components/name-bars.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import { decimal, number, percent } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type QuestionResult, type SurveyStats, surveyPath } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const otherChoice = "<other>";

export function SurveyResults({ id }: { id: string }) {
  const stats = useResource<SurveyStats>(`survey stats ${project.value?.id} ${id}`, (signal) =>
    request(surveyPath(id, "stats/"), { signal }),
  );
  return (
    <Content resource={stats}>
      {({ stats: counts, rates, questions }) => (
        <>
          <section class="card stack">
            <p>
              {(["shown", "sent", "dismissed"] as const)
                .map((kind) => `${w[kind]}: ${number(counts[`survey ${kind}`].total_count)}`)
                .join(" · ")}
            </p>
            <p class="muted">
              {w.responseRate(rates.unique_users_response_rate)},{" "}
              {w.dismissalRate(rates.unique_users_dismissal_rate)}
            </p>
          </section>
          {questions.map((question) => (
            <QuestionCard key={question.id} result={question} />
          ))}
        </>
      )}
    </Content>
  );
}

function QuestionCard({
  result: { index, question, answered, mean, nps, distribution, weeks },
}: {
  result: QuestionResult;
}) {
  const facts = [
    w.answered(answered),
    ...(mean === null ? [] : [w.mean(mean)]),
    ...(nps === null ? [] : [w.nps(nps.score, ...nps.interval)]),
  ];
  return (
    <section class="card stack">
      <h2>
        {index + 1}. {question}
      </h2>
      {distribution.length === 0 && <p>{facts.join(" · ")}</p>}
      {answered === 0 ? (
        <Empty title={w.noAnswers} icon="chart" />
      ) : distribution.length === 0 ? (
        <p class="help">{w.texts}</p>
      ) : (
        <NameBars
          label={question}
          summary={facts.join(" · ")}
          names={distribution.map(
            ({ value, percentage }) =>
              `${value === otherChoice ? w.freeText : value} (${percent(percentage / 100)})`,
          )}
          series={[{ name: question, values: distribution.map(({ count }) => count) }]}
        />
      )}
      {weeks.length > 1 && <Weeks weeks={weeks} isScore={nps !== null} />}
    </section>
  );
}

function Weeks({ weeks, isScore }: { weeks: QuestionResult["weeks"]; isScore: boolean }) {
  const answered = weeks.filter(({ mean }) => mean !== null);
  const bounds = [
    { name: w.scoreFrom, sameAs: 0, values: answered.map(({ nps }) => nps?.interval[0] ?? 0) },
    { name: w.scoreTo, sameAs: 0, values: answered.map(({ nps }) => nps?.interval[1] ?? 0) },
  ];
  return (
    <>
      <Chart
        label={w.byWeek}
        summary={isScore ? w.score : w.average}
        rowTitle={w.week}
        names={answered.map(({ week }) => week)}
        series={
          isScore
            ? [{ name: w.score, values: answered.map(({ nps }) => nps?.score ?? 0) }, ...bounds]
            : [{ name: w.average, values: answered.map(({ mean }) => mean ?? 0) }]
        }
      />
      <div class="wide-table">
        <table class="plain-table">
          <caption>{w.byWeek}</caption>
          <thead>
            <tr>
              <th scope="col">{w.week}</th>
              <th scope="col">{w.sent}</th>
              <th scope="col">{w.average}</th>
              {isScore && <th scope="col">{w.score}</th>}
              {isScore && <th scope="col">{w.interval}</th>}
            </tr>
          </thead>
          <tbody>
            {weeks.map(({ week, answered: count, mean, nps }) => (
              <tr key={week}>
                <td>{week}</td>
                <td>{number(count)}</td>
                <td>{mean === null ? "–" : decimal(mean)}</td>
                {isScore && <td>{nps === null ? "–" : number(Math.round(nps.score))}</td>}
                {isScore && <td>{nps === null ? "–" : w.range(...nps.interval)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
