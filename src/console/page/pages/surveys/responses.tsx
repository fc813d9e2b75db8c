/** Responses to a survey with their persons, and as a file. */

import { Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request, send } from "../../lib/api.ts";
import { download } from "../../lib/csv.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Survey, type SurveyResponse, surveyPath } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const shownMax = 100;

/** The server escapes formulas. */
async function downloadResponses(id: string): Promise<void> {
  try {
    const file = await send(surveyPath(id, "responses/"), { accept: "text/csv" });
    download("responses.csv", await file.blob());
  } catch (error) {
    toastError(error);
  }
}

export function SurveyResponses({ survey }: { survey: Survey }) {
  const { id, questions } = survey;
  const responses = useResource<{ count: number; results: SurveyResponse[] }>(
    `survey responses ${project.value?.id} ${id}`,
    (signal) => request(surveyPath(id, `responses/?limit=${shownMax}`), { signal }),
  );
  return (
    <section class="card stack">
      <div class="row apart">
        <h2>{w.tabs.responses}</h2>
        <Button icon="download" onClick={() => void downloadResponses(id)}>
          {w.exportCsv}
        </Button>
      </div>
      <Content resource={responses}>
        {({ results, count }) =>
          results.length === 0 ? (
            <Empty title={w.noResponses} icon="chart" />
          ) : (
            <>
              {count > results.length && <p class="help">{w.newest(results.length, count)}</p>}
              <div class="wide-table">
                <table class="plain-table">
                  <thead>
                    <tr>
                      <th scope="col">{w.person}</th>
                      <th scope="col">{w.time}</th>
                      {questions.map(({ id: questionId, question }) => (
                        <th key={questionId} scope="col">
                          {question}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {results.map((response, position) => (
                      <Row key={response.submission_id ?? position} response={response} />
                    ))}
                  </tbody>
                </table>
              </div>
            </>
          )
        }
      </Content>
    </section>
  );
}

function Row({
  response: { distinct_id: distinctId, timestamp, completed, answers },
}: {
  response: SurveyResponse;
}) {
  return (
    <tr>
      <td>
        {distinctId === null ? "–" : <a href={to("persons", { search: distinctId })}>{distinctId}</a>}
        {!completed && <span class="muted"> {w.partialAnswer}</span>}
      </td>
      <td>
        <RelativeTime at={timestamp} />
      </td>
      {answers.map(({ question_id: id, answer }) => (
        <td key={id}>{Array.isArray(answer) ? answer.join(", ") : (answer ?? "–")}</td>
      ))}
    </tr>
  );
}
