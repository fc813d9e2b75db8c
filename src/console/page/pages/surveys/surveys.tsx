/** Surveys of the project. */

import { SearchField, Select } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { request } from "../../lib/api.ts";
import { number } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress, useSearch } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { useShortcuts } from "../../lib/shortcuts.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Survey } from "../../model/surveys.ts";

const w = lazyMessages.surveys;
const listMax = 500;
const tones = { draft: "plain", running: "good", completed: "plain" } as const;

export function SurveyBadge({ survey }: { survey: Survey }) {
  return (
    <Badge tone={tones[survey.status]}>{survey.archived ? w.archived : w.statuses[survey.status]}</Badge>
  );
}

const getColumns = (counts: Record<string, number> | undefined): Column<Survey>[] => [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 3fr)",
    cell: ({ id, name, description }) => (
      <>
        <a href={to(`surveys/${id}`)}>{name}</a>
        <span class="sub">{description}</span>
      </>
    ),
  },
  { id: "status", title: w.columns.status, width: "7rem", cell: (survey) => <SurveyBadge survey={survey} /> },
  {
    id: "sent",
    title: w.columns.sent,
    width: "7rem",
    isNumber: true,
    isWideOnly: true,
    cell: ({ id }) => (counts === undefined ? "–" : number(counts[id] ?? 0)),
  },
  {
    id: "questions",
    title: w.columns.questions,
    width: "7rem",
    isNumber: true,
    isWideOnly: true,
    cell: ({ questions }) => number(questions.length),
  },
  {
    id: "start",
    title: w.columns.start,
    width: "9rem",
    isWideOnly: true,
    cell: ({ start_date: at }) => <RelativeTime at={at} />,
  },
];

export function Surveys() {
  const address = useAddress();
  const { query, set, go } = address;
  const [text, setText] = useSearch(address);
  useShortcuts({ n: () => go("surveys/new") });
  const list = useResource<{ results: Survey[] }>(`surveys ${project.value?.id}`, (signal) =>
    request(inProject(`surveys/?limit=${listMax}`), { signal }),
  );
  const counts = useBackgroundResource<Record<string, number>>(
    `survey counts ${project.value?.id}`,
    (signal) => request(inProject("surveys/responses_count/"), { signal }),
  ).data;
  const status = (query.status ?? "") as keyof typeof w.statusChoices;
  const isShown = (survey: Survey) =>
    (status === "archived"
      ? survey.archived
      : !survey.archived && (status === "" || survey.status === status)) &&
    survey.name.toLowerCase().includes((query.search ?? "").toLowerCase());
  return (
    <Page
      title={messages.frame.pages.surveys}
      action={
        <Button kind="main" icon="plus" href={to("surveys/new")}>
          {w.newSurvey}
        </Button>
      }
    >
      <div class="filters">
        <SearchField label={w.search} value={text} onInput={setText} />
        <Select
          label={w.status}
          isLabelHidden
          value={status}
          choices={Object.entries(w.statusChoices) as [typeof status, string][]}
          onChange={(chosen) => set({ status: chosen || undefined })}
        />
      </div>
      <Content resource={list}>
        {({ results }) => {
          const shown = results.filter(isShown);
          return shown.length > 0 ? (
            <DataTable
              label={messages.frame.pages.surveys}
              columns={getColumns(counts)}
              count={shown.length}
              rowAt={(index) => shown[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`surveys/${id}`)}
              rowHeight={52}
              narrowHeight={60}
            />
          ) : results.length > 0 ? (
            <Empty title={w.nothingFound} icon="live" />
          ) : (
            <Empty title={w.empty} icon="live" command="flagkeep surveys create -f FILE">
              <p class="muted">{w.emptyText}</p>
            </Empty>
          );
        }}
      </Content>
    </Page>
  );
}
