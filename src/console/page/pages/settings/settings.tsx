/** Settings of the project, account, team and organization. */

import { Page } from "../../components/page.tsx";
import { Tabs } from "../../components/primitives.tsx";
import { useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { AccountSettings } from "./account.tsx";
import { OrganizationSettings } from "./organization.tsx";
import { ProjectSettings } from "./project.tsx";
import { TeamSettings } from "./team.tsx";
import { WebhookSettings } from "./webhooks.tsx";

const w = messages.settings;
type Tab = keyof typeof w.tabs;

export function Settings() {
  const { query, set } = useAddress();
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "project") as Tab;
  return (
    <Page isForm title={messages.frame.pages.settings}>
      <Tabs
        label={w.tabsLabel}
        tabs={Object.entries(w.tabs) as [Tab, string][]}
        current={tab}
        onChoose={(next) => set({ tab: next === "project" ? undefined : next }, true)}
      />
      {tab === "project" && <ProjectSettings />}
      {tab === "webhooks" && <WebhookSettings key={project.value?.id} />}
      {tab === "account" && <AccountSettings />}
      {tab === "team" && <TeamSettings />}
      {tab === "organization" && <OrganizationSettings />}
    </Page>
  );
}
