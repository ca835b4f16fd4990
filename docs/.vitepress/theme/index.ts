import type { Theme } from "vitepress";
// Use the fonts of the reader's machine, so that the site loads none.
import theme from "vitepress/theme-without-fonts";
import { weightOf } from "../site/weight-of.ts";
import "./style.css";

export default {
  extends: theme,
  // Set this function here, because the browser would evaluate a function in the configuration from its text, which the
  // site's policy forbids.
  enhanceApp({ siteData }) {
    const { base, themeConfig } = siteData.value;
    const searchOptions = { boostDocument: (id: string) => weightOf(id, themeConfig.searchWeights, base) };
    const search = { ...themeConfig.search, options: { ...themeConfig.search.options, miniSearch: { searchOptions } } };
    siteData.value = { ...siteData.value, themeConfig: { ...themeConfig, search } };
  },
} satisfies Theme;
