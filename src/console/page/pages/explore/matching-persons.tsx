/** Persons behind a number of a chart; they can be saved as a static cohort. */

import { FigureFrame } from "../../components/chart-frame.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { getQuery, type InsightDraft } from "../../model/insight.ts";
import { type Figure, readPersons } from "../../model/insight-sql.ts";

const w = lazyMessages.explore;
const listedMax = 200;
const uuidForm = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

export function MatchingPersons({
  question,
  figure,
  name,
  onClose,
}: {
  question: InsightDraft;
  figure: Figure;
  name: string;
  onClose: () => void;
}) {
  const { go } = useAddress();
  const query = getQuery(question);
  const found = useResource(`behind ${project.value?.id} ${JSON.stringify([query, figure])}`, (signal) =>
    readPersons(query, figure, signal),
  );
  const saved = useForm({ name }, async (values) => {
    const ids = (found.data?.rows ?? []).map(({ distinct_id: id }) => `"${id.replaceAll('"', '""')}"`);
    const csv = ["distinct_id", ...ids].join("\n");
    const body = { name: values.name.trim(), is_static: true, csv };
    const { id } = await request<{ id: number }>(inProject("cohorts/"), { method: "POST", body });
    toast(w.created(body.name));
    go(`cohorts/${id}`);
  });
  return (
    <Dialog title={w.matchingPersons(name)} size="large" onClose={onClose}>
      <Content resource={found} rows={4}>
        {({ rows, truncated, sql }) =>
          rows.length === 0 ? (
            <p class="muted">{w.noPersons}</p>
          ) : (
            <div class="stack">
              <p>
                {w.matchingCount(rows.length, truncated)}{" "}
                {rows.length > listedMax && w.matchingLimit(listedMax)}
              </p>
              <FigureFrame label={w.matchingPersons(name)} shape="wide" heads={[w.people, w.times]}>
                {rows.slice(0, listedMax).map(({ who, distinct_id: id, name: own, times }) => (
                  <tr key={who}>
                    <th scope="row">
                      {uuidForm.test(who) ? <a href={to(`persons/${who}`)}>{own ?? id}</a> : id}
                    </th>
                    <td>{number(times)}</td>
                  </tr>
                ))}
              </FigureFrame>
              <form
                class="row bottom"
                onSubmit={(event) => {
                  event.preventDefault();
                  void saved.submit();
                }}
              >
                <Field label={w.saveName} {...saved.input("name")} error={saved.error} isRequired />
                <Button type="submit">{w.saveAs}</Button>
                <Button icon="sql" onClick={() => go("sql", { q: sql })}>
                  {w.asSql}
                </Button>
              </form>
            </div>
          )
        }
      </Content>
    </Dialog>
  );
}
