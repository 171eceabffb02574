"""Packages that bring their help in several languages. Long lists, so they have a file of their own.

Not among them: packages of many megabytes with little text.
"""

GNOME = """
    accerciser aisleriot amide anjuta-common atril-common baobab bijiben brasero-common burner-common
    caja-actions-common cheese-common d-feet dasher-data deja-dup devhelp-common drawing easytag endeavour-common
    engrampa-common eog eom-common epiphany-browser-data evince-common evolution-common file-roller five-or-more
    font-manager-common four-in-a-row frogr-data gbrainy gdm3 geary gedit-common gedit-plugin-bookmarks
    gedit-plugin-bracket-completion gedit-plugin-character-map gedit-plugin-code-comment gedit-plugin-color-picker
    gedit-plugin-draw-spaces gedit-plugin-git gedit-plugin-join-lines gedit-plugin-multi-edit
    gedit-plugin-session-saver gedit-plugin-synctex gedit-plugin-terminal gedit-plugin-text-size
    gedit-plugin-word-completion gedit-plugins-common ghex giggle glabels-data glade glogic glom-doc gnome-2048
    gnome-applets-data gnome-boxes gnome-calculator gnome-chess gnome-clocks gnome-color-manager
    gnome-commander-data gnome-connections gnome-desktop3-data gnome-devel-docs gnome-dictionary gnome-klotski
    gnome-logs gnome-mahjongg gnome-mastermind gnome-mines gnome-music gnome-nettool gnome-nibbles
    gnome-panel-data gnome-photos gnome-robots gnome-sudoku gnome-system-log gnome-system-monitor
    gnome-system-tools gnome-taquin gnome-terminal-data gnome-tetravex gnome-text-editor gnome-user-docs
    gnome-video-arcade gnote gnumeric-doc goobox gparted-common grilo-plugins-0.3 gthumb-data gtk-doc-tools
    gtkmm-documentation gtranslator gucharmap gvb hamster-time-tracker hitori iagno jhbuild krb5-auth-dialog
    kupfer latexila-data lightsoff malcontent-gui mate-applets-common mate-calc-common mate-control-center-common
    mate-panel-common mate-power-manager-common mate-sensors-applet-common mate-system-monitor-common
    mate-terminal-common mate-user-guide mate-user-share-common mate-utils-common meld metadata-cleaner
    modem-manager-gui-help ocrfeeder orca oregano parlatype pitivi pluma-common pluma-plugin-bookmarks
    pluma-plugin-bracketcompletion pluma-plugin-codecomment pluma-plugin-synctex pluma-plugin-terminal
    pluma-plugin-wordcompletion pluma-plugins-common polari pulseeffects quadrapassel rhythmbox-data seahorse
    shotwell-common simple-scan sound-juicer swell-foop sysprof tali telegnome totem-common vinagre xiphos-data
    zenity-common
"""

KDE = """
    akonadi-import-wizard akregator ark artikulate blinken bluedevil bomber bovo calligraplan cantor cervisia
    choqok dolphin dragonplayer elisa filelight granatier gwenview juk kaddressbook kajongg kalarm kalgebra-common
    kalzium-data kamera kamoso kanagram kapman kapptemplate kate5-data katomic kbackup kbibtex-data kblackbox
    kblocks kbounce kbreakout kbruch kcachegrind kcalc kcharselect kde-cli-tools-data kde-config-cddb
    kde-config-cron kde-spectacle kdeconnect kdenlive-data kdepim-runtime kdepim-themeeditors kdesvn kdevelop-data
    kdf kdiamond kdiff3-doc keditbookmarks kexi-data kfind kfloppy kfourinline kgamma5 kgeography-data kgeotag
    kget kgoldrunner kgpg khangman khelpcenter khotkeys-data kid3 kig kigo kile-doc killbots kimagemapeditor
    kinfocenter kio kio-audiocd kio-extras-data kio-gdrive kio-gopher kiriki kiten kjumpingcube kleopatra klickety
    klines kmag kmahjongg kmail kmenuedit kmines kmix kmousetool kmouth kmplot kmymoney-common knavalbattle
    knetwalk knights knotes kolf kollision kolourpaint kompare konqueror konquest konsole konsolekalendar kontact
    kontrast konversation-data korganizer kpat kphotoalbum krdc kreversi krfb kronometer kruler krusader kshisen
    ksirk ksnakeduel kspaceduel ksquares kstars-data ksudoku ksystemlog kteatime ktechlab ktimer ktimetracker
    ktorrent-data ktouch-data kturtle kubrick kwalletmanager kwave kwin-data kwordquiz kwrite kxstitch-common
    libkf5kdelibs4support-data lokalize lskat-data okteta okular palapeli-data parley-data partitionmanager picmi
    pim-data-exporter pim-sieve-editor plasma-desktop-data plasma-pa plasma-workspace-data powerdevil-data
    rkward-data rocs rsibreak skanlite skrooge-common step sweeper systemsettings tellico-doc umbrello-data
"""
