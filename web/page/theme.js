// Runs before the first paint, so that the page never flashes in the wrong colours.
(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const theme = {
    get choice() {
      try { return localStorage.getItem('bowsprit.theme') || 'auto'; } catch { return 'auto'; }
    },
    set choice(value) {
      try { localStorage.setItem('bowsprit.theme', value); } catch { /* private browsing: lasts until the page closes */ }
      theme.apply(value);
    },
    apply(value = theme.choice) {
      document.documentElement.dataset.theme = value === 'auto' ? (dark.matches ? 'dark' : 'light') : value;
      dispatchEvent(new Event('themechange'));
    },
  };
  dark.addEventListener('change', () => theme.apply());
  window.bowspritTheme = theme;
  theme.apply();
})();
