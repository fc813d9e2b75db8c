/** Settings of the project, account, team and organization. */

import type { ComponentChildren } from "preact";
import { Page } from "../../components/page.tsx";
import { Tabs } from "../../components/primitives.tsx";
import { useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { AccountSettings } from "./account.tsx";
import { PersonalKeys } from "./keys.tsx";
import { OrganizationSettings } from "./organization.tsx";
import { ApprovalSettings, ProjectKeys, ProjectSettings } from "./project.tsx";
import { RoleSettings } from "./roles.tsx";
import { TeamSettings } from "./team.tsx";
import { WebhookSettings } from "./webhooks.tsx";

const w = messages.settings;
type Tab = keyof typeof w.tabs;

const pages: Record<Tab, () => ComponentChildren> = {
  project: () => <ProjectSettings />,
  keys: () => (
    <div class="stack">
      <ProjectKeys />
      <PersonalKeys />
    </div>
  ),
  approval: () => <ApprovalSettings />,
  webhooks: () => <WebhookSettings key={project.value?.id} />,
  account: () => <AccountSettings />,
  team: () => <TeamSettings />,
  roles: () => <RoleSettings />,
  organization: () => <OrganizationSettings />,
};

export function Settings() {
  const { query, set } = useAddress();
  const tab = (query.tab !== undefined && query.tab in w.tabs ? query.tab : "project") as Tab;
  return (
    <Page isForm title={messages.frame.pages.settings}>
      <div class="side-tabs">
        <Tabs
          label={w.tabsLabel}
          tabs={Object.entries(w.tabs) as [Tab, string][]}
          current={tab}
          onChoose={(next) => set({ tab: next === "project" ? undefined : next }, true)}
        />
        <div>{pages[tab]()}</div>
      </div>
    </Page>
  );
}
