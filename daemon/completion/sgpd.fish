# SPDX-License-Identifier: Apache-2.0
# Completion of sgpd(8) for fish.

complete -c sgpd -f
complete -c sgpd -s c -l config -r -F -d 'the configuration'
complete -c sgpd -l check -d 'check configuration, topology, data and place, and end'
complete -c sgpd -l tune -r -F -d 'train the local layers of a finished model alone, and end'
complete -c sgpd -l output -r -F -d 'the model file that --tune writes'
complete -c sgpd -l privacy-spent -x -d 'state what private steps were taken before the account was lost'
complete -c sgpd -s h -l help -d 'say how it is used'
complete -c sgpd -l help-config -d 'list every key of the configuration'
complete -c sgpd -l version -d 'say which version this is'
