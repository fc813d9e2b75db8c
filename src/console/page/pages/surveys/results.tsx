/** Results of a survey: counts, rates, and the answers to each question. */

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
    <Content of={stats}>
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
            <QuestionCard key={question.id} of={question} />
          ))}
        </>
      )}
    </Content>
  );
}

function QuestionCard({
  of: { index, question, answered, mean, nps, distribution, weeks },
}: {
  of: QuestionResult;
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
      <p>{facts.join(" · ")}</p>
      {answered === 0 ? (
        <Empty title={w.noAnswers} icon="chart" />
      ) : distribution.length === 0 ? (
        <p class="help">{w.texts}</p>
      ) : (
        <NameBars
          label={question}
          summary={w.answered(answered)}
          names={distribution.map(
            ({ value, percentage }) =>
              `${value === otherChoice ? w.other : value} (${percent(percentage / 100)})`,
          )}
          series={[{ name: question, values: distribution.map(({ count }) => count) }]}
        />
      )}
      {weeks.length > 1 && (
        <table class="plain-table">
          <caption>{w.byWeek}</caption>
          <thead>
            <tr>
              <th scope="col">{w.week}</th>
              <th scope="col">{w.sent}</th>
              <th scope="col">{w.average}</th>
              {nps !== null && <th scope="col">{w.score}</th>}
            </tr>
          </thead>
          <tbody>
            {weeks.map(({ week, answered: inWeek, mean: average, nps: score }) => (
              <tr key={week}>
                <td>{week}</td>
                <td>{number(inWeek)}</td>
                <td>{average === null ? "–" : decimal(average)}</td>
                {nps !== null && <td>{score === null ? "–" : number(Math.round(score.score))}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
