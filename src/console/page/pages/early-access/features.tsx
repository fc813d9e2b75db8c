/** Early access features of the project. */

import { useState } from "preact/hooks";
import { Select } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { request } from "../../lib/api.ts";
import { number } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { useShortcuts } from "../../lib/shortcuts.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Enrollment, type Feature, featurePath, type Stage } from "../../model/early-access.ts";
import { userName } from "../../model/flags.ts";
import { FeatureForm } from "./feature-form.tsx";

const w = lazyMessages.earlyAccess;
const listMax = 500;

function StageBadge({ stage }: { stage: Stage }) {
  const isReleased = stage !== "draft" && stage !== "archived";
  return <Badge tone={isReleased ? "good" : "plain"}>{w.stages[stage]}</Badge>;
}

function Enrolled({ feature }: { feature: Feature }) {
  const enrollment = useBackgroundResource<Enrollment>(
    `enrollment ${project.value?.id} ${feature.id}`,
    (signal) => request(featurePath(feature.id, "enrollment/"), { signal }),
  ).data;
  if (enrollment === undefined) return <>–</>;
  return <>{`${number(enrollment.enrolled)}${enrollment.is_truncated ? "+" : ""}`}</>;
}

const columns: Column<Feature>[] = [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 3fr)",
    cell: ({ id, name, feature_flag: flag }) => (
      <>
        <a href={to(`early-access/${id}`)}>{name}</a>
        <span class="sub">{flag.key}</span>
      </>
    ),
  },
  {
    id: "stage",
    title: w.columns.stage,
    width: "11rem",
    cell: ({ stage }) => <StageBadge stage={stage} />,
  },
  {
    id: "enrolled",
    title: w.columns.enrolled,
    width: "7rem",
    isNumber: true,
    isWideOnly: true,
    cell: (feature) => <Enrolled feature={feature} />,
  },
  {
    id: "owner",
    title: w.columns.owner,
    width: "8rem",
    isWideOnly: true,
    cell: ({ created_by: by }) => userName(by),
  },
  {
    id: "created",
    title: w.columns.created,
    width: "8rem",
    isWideOnly: true,
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
];

export function Features() {
  const { query, set, go } = useAddress();
  const [isOpen, setOpen] = useState(false);
  useShortcuts({ n: () => setOpen(true) });
  const list = useResource<{ results: Feature[] }>(`features ${project.value?.id}`, (signal) =>
    request(inProject(`early_access_feature/?limit=${listMax}`), { signal }),
  );
  const stage = (query.stage ?? "") as Stage | "";
  const button = (
    <Button kind="main" icon="plus" onClick={() => setOpen(true)}>
      {w.newFeature}
    </Button>
  );
  return (
    <Page title={messages.frame.pages["early-access"]} action={button}>
      <div class="filters">
        <Select
          label={w.stage}
          isLabelHidden
          value={stage}
          choices={[["", w.allStages] as const, ...(Object.entries(w.stages) as [Stage, string][])]}
          onChange={(chosen) => set({ stage: chosen || undefined })}
        />
      </div>
      <Content resource={list}>
        {({ results }) => {
          const shown = results.filter((result) => stage === "" || result.stage === stage);
          return shown.length === 0 ? (
            <Empty
              title={stage === "" ? w.empty : w.nothingFound}
              icon="play"
              {...(stage === "" ? { command: "flagkeep features create NAME --stage beta" } : {})}
            >
              {stage === "" && <p class="muted">{w.emptyText}</p>}
            </Empty>
          ) : (
            <DataTable
              label={messages.frame.pages["early-access"]}
              columns={columns}
              count={shown.length}
              rowAt={(index) => shown[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`early-access/${id}`)}
              rowHeight={52}
              narrowHeight={60}
            />
          );
        }}
      </Content>
      {isOpen && (
        <FeatureForm onClose={() => setOpen(false)} onSaved={({ id }) => go(`early-access/${id}`)} />
      )}
    </Page>
  );
}
